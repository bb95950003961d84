// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/trace_file_reader.h"

#include <fmt/format.h>

#include <utility>

#include "base/status.h"

namespace neurontrace {
namespace {

// Writers that end each element with a comma close the array with an empty object.
bool IsEmptyObject(std::string_view text) {
  return text.size() >= 2 && text.front() == '{' &&
         text.find_first_not_of(" \n\r\t", 1) == text.size() - 1;
}

}  // namespace

absl::StatusOr<TraceFileReader> TraceFileReader::Open(const std::string& path,
                                                      const TraceFileFacts& facts,
                                                      uint64_t first_element) {
  ASSIGN_OR_RETURN(TraceFile file, TraceFile::Open(path));
  return TraceFileReader(std::move(file), facts, first_element);
}

TraceFileReader::TraceFileReader(TraceFile file, const TraceFileFacts& facts,
                                 uint64_t first_element)
    : file_(std::make_unique<TraceFile>(std::move(file))),
      cutter_([file = file_.get()](char* out, size_t size) { return file->Read(out, size); }),
      parser_(facts.base_time_ns, facts.first_time_ns),
      first_element_(first_element) {}

TraceFileReader::Kind TraceFileReader::Next() {
  while (!ended_) {
    const auto piece = cutter_.Next();
    if (!piece.ok()) return LoseRest(std::string(piece.status().message()));
    switch (piece->kind) {
      case ElementCutter::Kind::kMember:
        continue;
      case ElementCutter::Kind::kOversized:
        if (!piece->key.empty() || position_++ < first_element_) continue;
        return LoseElement(LossReason::kLimit, "longer than an event may be");
      case ElementCutter::Kind::kEnd:
        ended_ = true;
        return Kind::kEnd;
      case ElementCutter::Kind::kTruncated:
        return LoseRest(fmt::format("the file ends in the middle, at byte {}", bytes_read()));
      case ElementCutter::Kind::kMalformed:
        return LoseRest(fmt::format("byte {} is no trace file's", bytes_read()));
      case ElementCutter::Kind::kElement:
        break;
    }
    const absl::Status status = parser_.Parse(piece->text, event_);
    if (position_++ < first_element_ || IsEmptyObject(piece->text)) continue;
    if (status.ok()) return Kind::kEvent;
    return LoseElement(
        absl::IsResourceExhausted(status) ? LossReason::kLimit : LossReason::kMalformed,
        std::string(status.message()));
  }
  return Kind::kEnd;
}

TraceFileReader::Kind TraceFileReader::LoseElement(LossReason reason, std::string_view why) {
  loss_ = {};
  loss_.place = LossPlace::kDecode;
  loss_.reason = reason;
  loss_.events = 1;
  loss_.detail = fmt::format("element {}: {}", position_ - 1, why);
  return Kind::kLoss;
}

TraceFileReader::Kind TraceFileReader::LoseRest(std::string_view why) {
  ended_ = true;
  loss_ = {};
  loss_.place = LossPlace::kDecode;
  loss_.reason = LossReason::kMalformed;
  loss_.events_unknown = true;
  loss_.detail = fmt::format("after {} elements: {}", position_, why);
  return Kind::kLoss;
}

}  // namespace neurontrace
