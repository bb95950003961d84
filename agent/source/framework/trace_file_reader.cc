// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/trace_file_reader.h"

#include <fmt/format.h>

#include <utility>

#include "base/clean_text.h"
#include "base/status.h"
#include "trace/framework_limits.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

constexpr size_t kNameShownMax = 64;

// Writers that end each element with a comma close the array with an empty object.
bool IsEmptyObject(std::string_view text) {
  return text.size() >= 2 && text.front() == '{' &&
         text.find_first_not_of(" \n\r\t", 1) == text.size() - 1;
}

}  // namespace

absl::StatusOr<TraceFileReader> TraceFileReader::Open(const std::string& path,
                                                      const TraceFileFacts& facts,
                                                      uint64_t first_element,
                                                      const std::string& root) {
  ASSIGN_OR_RETURN(TraceFile file, TraceFile::Open(path, root));
  return TraceFileReader(std::move(file), TraceFileScan::ArrayKeyOf(path), facts, first_element);
}

TraceFileReader::TraceFileReader(TraceFile file, std::string_view array_key,
                                 const TraceFileFacts& facts, uint64_t first_element)
    : file_(std::make_unique<TraceFile>(std::move(file))),
      cutter_([file = file_.get()](char* out, size_t size) { return file->Read(out, size); },
              {.array_key = array_key}),
      parser_(facts.base_time_ns, facts.first_time_ns, facts.time_bounds),
      refusal_(facts.is_refused ? facts.problem : ""),
      first_element_(first_element) {
  if (facts.is_mapping) entries_.emplace(facts.first_time_ns);
}

TraceFileReader::Kind TraceFileReader::Next() {
  oddities_.clear();
  if (ended_) return Kind::kEnd;
  if (!refusal_.empty()) return LoseRest(LossReason::kMalformed, refusal_);
  if (entries_ && position_ == limits::kMappingEntriesMax) {
    return LoseRest(LossReason::kLimit, "more entries than are read of one mapping file");
  }
  const auto piece = cutter_.Next();
  if (!piece.ok()) return LoseRest(LossReason::kMalformed, std::string(piece.status().message()));
  switch (piece->kind) {
    case ElementCutter::Kind::kNotYet:
      return Kind::kNotYet;
    case ElementCutter::Kind::kMember:
      return Kind::kPassedOver;
    case ElementCutter::Kind::kElement:
      return TakeElement(piece->text);
    case ElementCutter::Kind::kOversized:
      if (!piece->key.empty() || position_++ < first_element_) return Kind::kPassedOver;
      return LoseElement(LossReason::kLimit, "longer than an event may be");
    case ElementCutter::Kind::kEnd:
      ended_ = true;
      return Kind::kEnd;
    case ElementCutter::Kind::kTruncated:
      return LoseRest(LossReason::kMalformed,
                      fmt::format("the file ends in the middle, at byte {}", bytes_read()));
    case ElementCutter::Kind::kMalformed:
      break;
  }
  return LoseRest(LossReason::kMalformed, fmt::format("byte {} is no trace file's", bytes_read()));
}

// Elements that are passed over are read, too: what comes later depends on them.
TraceFileReader::Kind TraceFileReader::TakeElement(std::string_view text) {
  const absl::Status status =
      entries_ ? entries_->Parse(text, event_) : parser_.Parse(text, event_);
  const bool has_no_time = absl::IsOutOfRange(status);
  if (!IsEmptyObject(text) && !entries_ && (status.ok() || has_no_time)) {
    NoteOddities(status, spans_.Join(position_, event_, has_no_time));
  }
  if (position_++ < first_element_ || IsEmptyObject(text)) return Kind::kPassedOver;
  if (status.ok()) return Kind::kEvent;
  if (has_no_time) return LoseElement(LossReason::kNoTime, std::string(status.message()));
  return LoseElement(
      absl::IsResourceExhausted(status) ? LossReason::kLimit : LossReason::kMalformed,
      std::string(status.message()));
}

void TraceFileReader::NoteOddities(const absl::Status& status, SpanJoiner::Outcome outcome) {
  const auto note = [this](RemarkKind kind, std::string_view why) {
    std::string detail = fmt::format("element {}", position_);
    if (!event_.name.empty()) detail += fmt::format(" ({})", CleanText(event_.name, kNameShownMax));
    if (!why.empty()) detail += fmt::format(": {}", why);
    oddities_.push_back({kind, std::move(detail)});
  };
  if (!status.ok()) return note(RemarkKind::kNoTime, std::string(status.message()));
  if (outcome == SpanJoiner::Outcome::kBeginLost) note(RemarkKind::kEndWithoutBegin, "");
  if (!event_.odd_duration.empty()) {
    note(RemarkKind::kOddDuration, fmt::format("its duration is {}", event_.odd_duration));
  }
  for (uint32_t i = 0; i < event_.values_not_numeric; ++i) note(RemarkKind::kCounterText, "");
}

TraceFileReader::Kind TraceFileReader::LoseElement(LossReason reason, std::string_view why) {
  loss_ = {};
  loss_.place = LossPlace::kDecode;
  loss_.reason = reason;
  loss_.events = 1;
  const bool is_named = reason == LossReason::kNoTime && !event_.name.empty();
  loss_.detail = fmt::format("element {}{}, to byte {}: {}", position_ - 1,
                             is_named ? " (" + CleanText(event_.name, kNameShownMax) + ")" : "",
                             bytes_read(), why);
  return Kind::kLoss;
}

TraceFileReader::Kind TraceFileReader::LoseRest(LossReason reason, std::string_view why) {
  ended_ = true;
  loss_ = {};
  loss_.place = LossPlace::kDecode;
  loss_.reason = reason;
  loss_.events_unknown = true;
  loss_.detail = fmt::format("after {} elements: {}", position_, why);
  return Kind::kLoss;
}

}  // namespace neurontrace
