// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/trace_file_scan.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <charconv>
#include <utility>

#include "base/status.h"

namespace neurontrace {
namespace {

// distributedInfo.NAME where it is a number from 0.
std::optional<int64_t> ReadCount(std::string_view object_text, const char* name) {
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document;
  int64_t value = 0;
  const simdjson::padded_string_view padded(object_text.data(), object_text.size(),
                                            object_text.size() + ElementCutter::kPaddingBytes);
  if (parser.iterate(padded).get(document) != simdjson::SUCCESS) return std::nullopt;
  simdjson::ondemand::object object;
  if (document.get_object().get(object) != simdjson::SUCCESS) return std::nullopt;
  if (object.find_field_unordered(name).get_int64().get(value) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  return value < 0 ? std::nullopt : std::optional(value);
}

}  // namespace

absl::StatusOr<TraceFileScan> TraceFileScan::Open(const std::string& path) {
  ASSIGN_OR_RETURN(TraceFile file, TraceFile::Open(path));
  return TraceFileScan(std::move(file));
}

TraceFileScan::TraceFileScan(TraceFile file)
    : file_(std::make_unique<TraceFile>(std::move(file))),
      cutter_([file = file_.get()](char* out, size_t size) { return file->Read(out, size); }),
      parser_(0, 0) {}

bool TraceFileScan::Step(uint64_t bytes) {
  const uint64_t end = cutter_.position() + bytes;
  while (cutter_.position() < end) {
    const auto piece = cutter_.Next();
    if (!piece.ok()) return End(std::string(piece.status().message()));
    switch (piece->kind) {
      case ElementCutter::Kind::kMember:
        TakeMember(*piece);
        break;
      case ElementCutter::Kind::kElement:
        TakeElement(piece->text);
        break;
      case ElementCutter::Kind::kOversized:
        if (piece->key.empty()) ++facts_.elements;
        break;
      case ElementCutter::Kind::kEnd:
        facts_.complete = true;
        return End("");
      case ElementCutter::Kind::kTruncated:
        return End(fmt::format("the file ends in the middle, at byte {}", cutter_.position()));
      case ElementCutter::Kind::kMalformed:
        return End(fmt::format("byte {} is no trace file's", cutter_.position()));
    }
  }
  return false;
}

void TraceFileScan::TakeMember(const ElementCutter::Piece& piece) {
  if (piece.key == "baseTimeNanoseconds") {
    std::string_view digits = piece.text;
    if (digits.size() >= 2 && digits.front() == '"') digits = digits.substr(1, digits.size() - 2);
    uint64_t base_ns = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), base_ns);
    if (error == std::errc() && end == digits.data() + digits.size()) {
      facts_.base_time_ns = base_ns;
    }
  } else if (piece.key == "distributedInfo") {
    facts_.rank = ReadCount(piece.text, "rank");
    facts_.world_size = ReadCount(piece.text, "world_size");
  }
}

void TraceFileScan::TakeElement(std::string_view element) {
  ++facts_.elements;
  if (has_first_time_) return;
  FrameworkEvent event;
  if (!parser_.Parse(element, event).ok() || !parser_.had_time()) return;
  has_first_time_ = true;
  facts_.first_time_ns = event.fields.timestamp_ns;
}

bool TraceFileScan::End(std::string problem) {
  facts_.problem = std::move(problem);
  // The base may have come after the first event.
  if (has_first_time_) {
    uint64_t sum = 0;
    if (!__builtin_add_overflow(facts_.first_time_ns, facts_.base_time_ns, &sum)) {
      facts_.first_time_ns = sum;
    }
    has_first_time_ = false;
  } else {
    facts_.first_time_ns = facts_.base_time_ns;
  }
  return true;
}

}  // namespace neurontrace
