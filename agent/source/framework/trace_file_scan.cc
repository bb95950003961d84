// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/trace_file_scan.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <charconv>
#include <utility>

#include "agent/source/framework/trace_directory.h"
#include "base/status.h"
#include "trace/framework_limits.h"
#include "trace/framework_mapping.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

// Of members and elements in a step: each costs something, however short it is.
constexpr int kScanStepPieces = 8'192;

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

std::string_view TraceFileScan::ArrayKeyOf(std::string_view path) {
  return IsFrameworkMappingName(path) ? "data" : "traceEvents";
}

absl::StatusOr<TraceFileScan> TraceFileScan::Open(const std::string& path,
                                                  const std::string& root) {
  ASSIGN_OR_RETURN(TraceFile file, TraceFile::Open(path, root));
  return TraceFileScan(std::move(file), path);
}

TraceFileScan::TraceFileScan(TraceFile file, const std::string& path)
    : file_(std::make_unique<TraceFile>(std::move(file))),
      cutter_([file = file_.get()](char* out, size_t size) { return file->Read(out, size); },
              {.array_key = ArrayKeyOf(path)}),
      parser_(0, 0) {
  facts_.is_mapping = IsFrameworkMappingName(path);
  FileState state;
  if (facts_.is_mapping && LookAtFile(path, state)) facts_.base_time_ns = state.modified_ns;
}

bool TraceFileScan::Step(uint64_t bytes) {
  const uint64_t end = cutter_.position() + bytes;
  for (int i = 0; i < kScanStepPieces && cutter_.position() < end; ++i) {
    const auto piece = cutter_.Next();
    if (!piece.ok()) return End(std::string(piece.status().message()));
    switch (piece->kind) {
      case ElementCutter::Kind::kNotYet:
        return false;
      case ElementCutter::Kind::kMember:
        TakeMember(*piece);
        break;
      case ElementCutter::Kind::kElement:
        TakeElement(piece->text);
        break;
      case ElementCutter::Kind::kOversized:
        if (piece->key.empty()) {
          ++facts_.elements;
        } else if (facts_.is_mapping) {
          TakeMappingMember(*piece);
        }
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

// The version decides how all else is to be understood; one that is not known is not guessed at.
void TraceFileScan::TakeMappingMember(const ElementCutter::Piece& piece) {
  if (piece.key == "version") {
    has_version_ = true;
    if (piece.text != "1" && piece.text != "\"1\"") {
      constexpr size_t kShownMax = 32;
      Refuse(fmt::format("version {} of mapping files is not known, only 1 is",
                         piece.text.substr(0, kShownMax)));
    }
  } else if (piece.key == "data") {
    Refuse("\"data\" is no list");
  }
}

void TraceFileScan::Refuse(std::string_view why) {
  if (std::exchange(facts_.is_refused, true)) return;
  refusal_ = fmt::format("before byte {}: {}", cutter_.position(), why);
}

void TraceFileScan::TakeMember(const ElementCutter::Piece& piece) {
  if (facts_.is_mapping) return TakeMappingMember(piece);
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
  if (has_first_time_ || facts_.is_mapping) return;
  FrameworkEvent event;
  if (!parser_.Parse(element, event).ok() || !parser_.had_time()) return;
  has_first_time_ = true;
  facts_.first_time_ns = event.fields.timestamp_ns;
}

bool TraceFileScan::End(std::string problem) {
  facts_.problem = std::move(problem);
  if (facts_.is_mapping) EndMapping();
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

void TraceFileScan::EndMapping() {
  if (facts_.complete && !has_version_) Refuse("a mapping file without a version");
  if (facts_.is_refused) {
    facts_.problem = refusal_;
  } else if (facts_.problem.empty() && facts_.elements > limits::kMappingEntriesMax) {
    facts_.problem = fmt::format("{} entries, of which {} are read", facts_.elements,
                                 limits::kMappingEntriesMax);
  }
}

}  // namespace neurontrace
