// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/trace_file_reader.h"

#include <fmt/format.h>

#include <utility>

#include "agent/source/framework/trace_file_scan.h"
#include "lib/base/clean_text.h"
#include "lib/trace/framework_limits.h"
#include "lib/trace/limits.h"

// How it works: each piece of the cutter becomes one part of the reading. An element is parsed, its
// span is joined, and what is odd about it is noted; a piece that is no event becomes a loss,
// damage, or nothing.
namespace neurontrace {
namespace {

// Bytes of an event's name in a message.
constexpr size_t kNameShownMax = 64;

// Writers that put a comma after each element close the array with an empty object.
bool IsEmptyObject(std::string_view text) {
  return text.size() >= 2 && text.front() == '{' &&
         text.find_first_not_of(" \n\r\t", 1) == text.size() - 1;
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20; }

// Escapes control characters inside strings as JSON requires, since some writers copy names
// unchanged. Returns false if there are none; `out` is followed by ElementCutter::kPaddingBytes
// readable bytes.
bool EscapeControlCharacters(std::string_view text, std::string& out) {
  out.clear();
  bool in_string = false;
  bool changed = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && IsControl(c)) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
      changed = true;
      continue;
    }
    out += c;
    if (in_string && c == '\\' && i + 1 < text.size() && !IsControl(text[i + 1])) {
      out += text[++i];
    } else if (c == '"') {
      in_string = !in_string;
    }
  }
  out.reserve(out.size() + ElementCutter::kPaddingBytes);
  return changed;
}

}  // namespace

TraceFileReader::TraceFileReader(TraceFile file, const TraceFileFacts& facts,
                                 uint64_t first_element)
    : file_(std::make_unique<TraceFile>(std::move(file))),
      cutter_([file = file_.get()](char* out, size_t size) { return file->Read(out, size); },
              TraceFileScan::CutterOptions(facts.kind)),
      parser_(facts.base_time_ns, facts.first_time_ns, facts.time_bounds),
      refusal_(facts.is_refused ? facts.problem : ""),
      shortage_(!facts.complete ? facts.problem
                : facts.has_elements_behind
                    ? "more events follow the end of the trace and are not read"
                    : ""),
      first_element_(first_element) {
  if (facts.kind == ContentKind::kMapping) entries_.emplace(facts.first_time_ns);
}

EventReader::Kind TraceFileReader::Next() {
  anomalies_.clear();
  if (ended_) return Kind::kEnd;
  // A refused file gives one loss of unknown size and no events.
  if (!refusal_.empty()) return LoseRest(LossReason::kMalformed, refusal_);
  if (entries_ && position_ == limits::kMappingEntriesMax) {
    return LoseRest(LossReason::kLimit, "the mapping file has more entries than the limit");
  }
  const auto piece = cutter_.Next();
  if (absl::IsAborted(piece.status())) return Kind::kChanged;
  if (!piece.ok()) return LoseRest(LossReason::kMalformed, std::string(piece.status().message()));
  return HandlePiece(*piece);
}

EventReader::Kind TraceFileReader::HandlePiece(const ElementCutter::Piece& piece) {
  switch (piece.kind) {
    case ElementCutter::Kind::kNotYet:
      return Kind::kNotYet;
    case ElementCutter::Kind::kMember:
      return Kind::kPassedOver;
    case ElementCutter::Kind::kElement:
      return HandleElement(piece.text);
    case ElementCutter::Kind::kOversized:
      if (!piece.key.empty()) return Kind::kPassedOver;
      ++position_;
      return LoseElement(LossReason::kLimit, "the event exceeds the size limit");
    case ElementCutter::Kind::kDamaged:
      if (!piece.key.empty()) {
        return ReportDamage(fmt::format("member \"{}\" is damaged at byte {}", piece.key,
                                        cutter_.damage_position()));
      }
      ++position_;
      return LoseElement(LossReason::kMalformed,
                         fmt::format("damaged at byte {}", cutter_.damage_position()));
    case ElementCutter::Kind::kStray:
      return ReportDamage(fmt::format("after element {}: bytes {} to {} are not part of an event",
                                      position_ - 1, cutter_.damage_position(), bytes_read()));
    case ElementCutter::Kind::kEnd:
      if (!shortage_.empty()) return LoseRest(LossReason::kMalformed, shortage_);
      ended_ = true;
      return Kind::kEnd;
    case ElementCutter::Kind::kTruncated:
      return LoseRest(LossReason::kMalformed,
                      fmt::format("the file is truncated at byte {}", bytes_read()));
    case ElementCutter::Kind::kMalformed:
      break;
  }
  return LoseRest(LossReason::kMalformed, fmt::format("unexpected data at byte {}", bytes_read()));
}

// Elements that are passed over are parsed too: the time of metadata and the numbers of spans
// depend on all earlier elements.
EventReader::Kind TraceFileReader::HandleElement(std::string_view text) {
  absl::Status status = Parse(text);
  // The repair is tried only for elements that fail, as nearly all are valid.
  if (absl::IsInvalidArgument(status) && EscapeControlCharacters(text, repaired_)) {
    status = Parse(repaired_);
  }
  // An event without a time is lost, but it still is one end of a span.
  const bool has_no_time = absl::IsOutOfRange(status);
  if (!IsEmptyObject(text) && !entries_ && (status.ok() || has_no_time)) {
    AddRemarks(status, spans_.Join(position_, event_, has_no_time));
  }
  ++position_;
  if (IsEmptyObject(text)) return Kind::kPassedOver;
  // Stored by an earlier run of the agent.
  if (status.ok()) return position_ <= first_element_ ? Kind::kPassedOver : Kind::kEvent;
  const LossReason reason = has_no_time                         ? LossReason::kNoTime
                            : absl::IsResourceExhausted(status) ? LossReason::kLimit
                                                                : LossReason::kMalformed;
  return LoseElement(reason, std::string(status.message()));
}

void TraceFileReader::AddRemarks(const absl::Status& status, SpanJoiner::Outcome outcome) {
  // Details name the element by its index, so that a person can find it in the file.
  const auto note = [this](RemarkKind kind, std::string_view why) {
    std::string detail = fmt::format("element {}", position_);
    if (!event_.name.empty()) detail += fmt::format(" ({})", CleanText(event_.name, kNameShownMax));
    if (!why.empty()) detail += fmt::format(": {}", why);
    anomalies_.push_back({kind, std::move(detail)});
  };
  if (!status.ok()) return note(RemarkKind::kNoTime, std::string(status.message()));
  if (outcome == SpanJoiner::Outcome::kBeginLost) note(RemarkKind::kEndWithoutBegin, "");
  // Writers also omit a duration of 0, so an absent one is not odd.
  if (!event_.invalid_duration.empty() && event_.invalid_duration != "absent") {
    note(RemarkKind::kInvalidDuration, fmt::format("its duration is {}", event_.invalid_duration));
  }
  for (uint32_t i = 0; i < event_.values_not_numeric; ++i) note(RemarkKind::kCounterText, "");
}

Remark TraceFileReader::open_spans() const {
  // Spans that were given up may have had ends, which the first detail explains.
  SpanJoiner::Unended open = spans_.unended();
  if (spans_.given_up() > 0) {
    open.first.insert(
        open.first.begin(),
        fmt::format("the ends of {} were not searched because too many spans were open at once",
                    spans_.given_up()));
  }
  return {.kind = RemarkKind::kOpenSpan, .count = open.count, .details = std::move(open.first)};
}

absl::Status TraceFileReader::Parse(std::string_view text) {
  return entries_ ? entries_->Parse(text, event_) : parser_.Parse(text, event_);
}

EventReader::Kind TraceFileReader::ReportDamage(std::string_view what) {
  damage_ = what;
  return Kind::kDamage;
}

EventReader::Kind TraceFileReader::LoseElement(LossReason reason, std::string_view why) {
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

EventReader::Kind TraceFileReader::LoseRest(LossReason reason, std::string_view why) {
  ended_ = true;
  loss_ = {};
  loss_.place = LossPlace::kDecode;
  loss_.reason = reason;
  loss_.events_unknown = true;
  loss_.detail = fmt::format("after {} elements: {}", position_, why);
  return Kind::kLoss;
}

}  // namespace neurontrace
