// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/trace_file_scan.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <iterator>
#include <utility>

#include "agent/source/framework/decimal_time.h"
#include "agent/source/framework/json_scalar.h"
#include "agent/source/framework/trace_directory.h"
#include "base/status.h"
#include "trace/framework_limits.h"
#include "trace/framework_mapping.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

// Of members and elements in a step: each costs something, however short it is.
constexpr int kScanStepPieces = 8'192;

std::string_view WithoutQuotes(std::string_view token) {
  const bool is_text = token.size() >= 2 && token.front() == '"' && token.back() == '"';
  return is_text ? token.substr(1, token.size() - 2) : token;
}

// distributedInfo.NAME where it is a whole number from 0, or the text of one. Adds to `problems`
// where it is something else.
std::optional<int64_t> ReadCount(std::string_view object_text, const char* name,
                                 std::string& problems) {
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document;
  const simdjson::padded_string_view padded(object_text.data(), object_text.size(),
                                            object_text.size() + ElementCutter::kPaddingBytes);
  if (parser.iterate(padded).get(document) != simdjson::SUCCESS) return std::nullopt;
  simdjson::ondemand::object object;
  if (document.get_object().get(object) != simdjson::SUCCESS) return std::nullopt;
  simdjson::ondemand::value member;
  if (object.find_field_unordered(name).get(member) != simdjson::SUCCESS) return std::nullopt;
  std::string_view token = member.raw_json_token();
  token = token.substr(0, token.find_last_not_of(" \n\r\t") + 1);
  const auto number = ParseNanoseconds(WithoutQuotes(token));
  if (number && number->exact && number->ns <= INT64_MAX && !(number->negative && number->ns > 0)) {
    return static_cast<int64_t>(number->ns);
  }
  // Frameworks write null and -1 where there is no rank.
  const bool is_none = token == "null" || (number && number->negative && number->ns == 1);
  if (!is_none) {
    fmt::format_to(std::back_inserter(problems), "{}{} is {}", problems.empty() ? "" : ", ", name,
                   ShownToken(token));
  }
  return std::nullopt;
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
    TakeBase(piece.text);
  } else if (piece.key == "distributedInfo") {
    TakeDistributedInfo(piece.text);
  }
}

// Whatever is guessed in its place would put all events of the file at a wrong time.
void TraceFileScan::TakeBase(std::string_view token) {
  if (token == "null") return;
  const auto base = ParseNanoseconds(WithoutQuotes(token));
  if (base && base->ns <= TimeBounds::kLastNs && !(base->negative && base->ns > 0)) {
    facts_.base_time_ns = base->ns;
  } else {
    Refuse(fmt::format("\"baseTimeNanoseconds\" is {}, which is no number of nanoseconds",
                       ShownToken(token)));
  }
}

void TraceFileScan::TakeDistributedInfo(std::string_view text) {
  facts_.rank_problem.clear();
  facts_.rank = ReadCount(text, "rank", facts_.rank_problem);
  facts_.world_size = ReadCount(text, "world_size", facts_.rank_problem);
  if (facts_.rank && facts_.world_size && *facts_.rank >= *facts_.world_size) {
    facts_.rank_problem =
        fmt::format("rank is {} and world_size {}", *facts_.rank, *facts_.world_size);
    facts_.rank.reset();
    facts_.world_size.reset();
  }
}

void TraceFileScan::TakeElement(std::string_view element) {
  ++facts_.elements;
  if (facts_.is_mapping || times_.is_full()) return;
  FrameworkEvent event;
  parser_.Parse(element, event).IgnoreError();
  if (parser_.event_time()) times_.Add(*parser_.event_time());
}

bool TraceFileScan::End(std::string problem) {
  facts_.problem = std::move(problem);
  if (facts_.is_mapping) {
    EndMapping();
    facts_.first_time_ns = facts_.base_time_ns;
    return true;
  }
  if (facts_.is_refused) facts_.problem = refusal_;
  // The base may have come after the events.
  facts_.time_bounds = times_.Bounds(facts_.base_time_ns);
  facts_.first_time_ns = times_.FirstTime(facts_.base_time_ns).value_or(facts_.base_time_ns);
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
