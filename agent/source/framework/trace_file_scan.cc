// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/trace_file_scan.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "agent/source/framework/decimal_time.h"
#include "agent/source/framework/json_scalar.h"
#include "lib/base/status.h"
#include "lib/trace/framework_limits.h"
#include "lib/trace/limits.h"

// How it works: all pieces of the file are cut and counted, and the members that matter are parsed.
// Elements are parsed only until the times are known. End then derives the facts, as the base of
// the times may come last.
namespace neurontrace {
namespace {

// Members and elements per step: each has a cost, however short it is.
constexpr int kScanStepPieces = 8'192;
// Calls of ElementCutter::Drain per step.
constexpr int kDrainCalls = 8;
// Bytes of the file's beginning that are kept to say what it looks like.
constexpr size_t kFirstBytesKept = 64;

// Returns a token without the quotation marks around it, if it has both.
std::string_view WithoutQuotes(std::string_view token) {
  const bool is_text = token.size() >= 2 && token.front() == '"' && token.back() == '"';
  return is_text ? token.substr(1, token.size() - 2) : token;
}

// Returns distributedInfo.NAME if it is a whole number of 0 or more, or the text of one. Adds to
// `problems` if it is neither that nor one of the values for "none".
std::optional<int64_t> ReadCount(std::string_view object_text, const char* name,
                                 bool can_be_minus_one, std::string& problems) {
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
  // "-0" is 0; any other negative number is no count.
  if (number && number->exact && number->ns <= INT64_MAX && !(number->negative && number->ns > 0)) {
    return static_cast<int64_t>(number->ns);
  }
  // Frameworks write null and -1 where there is no rank.
  const bool is_minus_one = number && number->negative && number->ns == 1;
  const bool is_none = token == "null" || (can_be_minus_one && is_minus_one);
  if (!is_none) {
    fmt::format_to(std::back_inserter(problems), "{}{} is {}", problems.empty() ? "" : ", ", name,
                   ShownToken(token));
  }
  return std::nullopt;
}

}  // namespace

ElementCutter::Options TraceFileScan::CutterOptions(ContentKind kind) {
  ElementCutter::Options options;
  if (kind == ContentKind::kMapping) {
    options.array_key = "data";
    options.element_key = "nrta_seq_id";
    options.can_nest = false;
  }
  return options;
}

TraceFileScan::TraceFileScan(TraceFile file, ContentKind kind)
    : file_(std::make_unique<TraceFile>(std::move(file))),
      cutter_(
          [this](char* out, size_t size) {
            auto n = file_->Read(out, size);
            if (n.ok() && first_bytes_.size() < kFirstBytesKept) {
              first_bytes_.append(out, std::min(n->value_or(0), kFirstBytesKept));
            }
            return n;
          },
          CutterOptions(kind)),
      parser_(0, 0) {
  facts_.kind = kind;
  // Entries have no time; the file was written after what it maps.
  if (is_mapping()) facts_.base_time_ns = file_->state().modified_ns;
}

absl::StatusOr<bool> TraceFileScan::Step(uint64_t bytes) {
  const uint64_t end = cutter_.position() + bytes;
  // First part: the elements, until the trace ends.
  for (int i = 0; !ended_ && i < kScanStepPieces && cutter_.position() < end; ++i) {
    const auto piece = cutter_.Next();
    if (absl::IsAborted(piece.status())) return piece.status();
    if (!piece.ok()) {
      End(std::string(piece.status().message()));
    } else if (piece->kind == ElementCutter::Kind::kNotYet) {
      return false;
    } else {
      HandlePiece(*piece);
    }
  }
  // Second part: the bytes behind the trace, which belong to the content mark.
  for (int i = 0; ended_ && i < kDrainCalls; ++i) {
    // Nothing is kept of a file that is no trace, so its rest, which may be huge, is not read. What
    // was read already identifies it.
    if (!is_malformed_ || !facts_.is_refused) {
      const absl::StatusOr<bool> drained = cutter_.Drain();
      if (absl::IsAborted(drained.status())) return drained.status();
      if (drained.ok() && !*drained) continue;
    }
    // What is left of a file that ends in the middle belongs to its last element.
    if (facts_.complete) facts_.bytes_behind = cutter_.bytes_behind();
    facts_.has_elements_behind = facts_.complete && cutter_.has_elements_behind();
    facts_.content_bytes = file_->bytes_read();
    facts_.content_mark = file_->ContentMark();
    facts_.continues_prefix = file_->prefix_matches();
    return true;
  }
  return false;
}

void TraceFileScan::HandlePiece(const ElementCutter::Piece& piece) {
  switch (piece.kind) {
    case ElementCutter::Kind::kNotYet:
    case ElementCutter::Kind::kStray:
      break;
    case ElementCutter::Kind::kMember:
      HandleMember(piece);
      break;
    case ElementCutter::Kind::kElement:
      HandleElement(piece.text);
      break;
    case ElementCutter::Kind::kOversized:
    case ElementCutter::Kind::kDamaged:
      if (piece.key.empty()) {
        ++facts_.elements;
        has_event_ = true;
      } else if (is_mapping()) {
        HandleMappingMember(piece);
      }
      break;
    case ElementCutter::Kind::kEnd:
      facts_.complete = true;
      return End("");
    case ElementCutter::Kind::kTruncated:
      return End(fmt::format("the file is truncated at byte {}", cutter_.position()));
    case ElementCutter::Kind::kMalformed:
      is_malformed_ = true;
      return End(fmt::format("unexpected data at byte {}", cutter_.position()));
  }
}

// The version decides how everything else is to be understood, so an unknown one is refused.
void TraceFileScan::HandleMappingMember(const ElementCutter::Piece& piece) {
  if (piece.key == "version") {
    has_version_ = true;
    if (piece.text != "1" && piece.text != "\"1\"") {
      constexpr size_t kShownMax = 32;
      Refuse(fmt::format("version {} of mapping files is unsupported; version 1 is supported",
                         piece.text.substr(0, kShownMax)));
    }
  } else if (piece.key == "data") {
    Refuse("\"data\" is not a list");
  }
}

void TraceFileScan::Refuse(std::string_view why) {
  if (std::exchange(facts_.is_refused, true)) return;
  refusal_ = ended_ ? std::string(why) : fmt::format("before byte {}: {}", cutter_.position(), why);
}

void TraceFileScan::HandleMember(const ElementCutter::Piece& piece) {
  if (is_mapping()) return HandleMappingMember(piece);
  if (piece.key == "traceEvents") {
    Refuse("\"traceEvents\" is not a list");
  } else if (piece.key == "baseTimeNanoseconds") {
    ParseBase(piece.text);
  } else if (piece.key == "distributedInfo") {
    ParseDistributedInfo(piece.text);
  }
}

// An invalid base is refused: any guess would put all events of the file at a wrong time.
void TraceFileScan::ParseBase(std::string_view token) {
  if (token == "null") return;
  const auto base = ParseNanoseconds(WithoutQuotes(token));
  if (base && base->ns <= TimeBounds::kLastNs && !(base->negative && base->ns > 0)) {
    // Times in traceEvents are microseconds since this base.
    facts_.base_time_ns = base->ns;
  } else {
    Refuse(fmt::format("\"baseTimeNanoseconds\" is {}, which is not a number of nanoseconds",
                       ShownToken(token)));
  }
}

void TraceFileScan::ParseDistributedInfo(std::string_view text) {
  facts_.rank_problem.clear();
  facts_.rank = ReadCount(text, "rank", true, facts_.rank_problem);
  // A world of -1 beside a rank contradicts it: some writers put 0 for a rank that they do not
  // have.
  facts_.world_size = ReadCount(text, "world_size", !facts_.rank, facts_.rank_problem);
  if (!facts_.rank_problem.empty()) facts_.rank.reset();
  if (facts_.rank && facts_.world_size && *facts_.rank >= *facts_.world_size) {
    facts_.rank_problem =
        fmt::format("rank is {}, but world_size is {}", *facts_.rank, *facts_.world_size);
    facts_.rank.reset();
    facts_.world_size.reset();
  }
}

void TraceFileScan::HandleElement(std::string_view element) {
  ++facts_.elements;
  has_event_ = has_event_ || element.find("\"ph\"") != std::string_view::npos;
  if (is_mapping() || times_.is_full()) return;
  FrameworkEvent event;
  parser_.Parse(element, event).IgnoreError();
  if (parser_.event_time()) times_.Add(*parser_.event_time());
}

void TraceFileScan::End(std::string problem) {
  ended_ = true;
  facts_.problem = std::move(problem);
  is_mapping() ? EndMapping() : EndTrace();
  // A refusal is a complete result: the caller must not wait for more bytes.
  if (facts_.is_refused) {
    facts_.problem = refusal_;
    facts_.complete = true;  // it would not become better by waiting
  }
  if (is_mapping()) {
    facts_.first_time_ns = facts_.base_time_ns;
    return;
  }
  // Only now, as the base may come after the events.
  const auto first_ns = times_.FirstTime(0);
  if (facts_.base_time_ns != 0 && first_ns &&
      AddSaturating(facts_.base_time_ns, *first_ns) < kWallClockMinNs) {
    facts_.base_description = fmt::format(
        "\"baseTimeNanoseconds\" is {}, which gives times before the year 2001 and is ignored",
        facts_.base_time_ns);
    facts_.base_time_ns = 0;
  }
  // Without a base, times before 2001 cannot be of the epoch.
  facts_.has_own_time = facts_.base_time_ns == 0 && first_ns && *first_ns < kWallClockMinNs;
  facts_.time_bounds = times_.Bounds(facts_.base_time_ns);
  facts_.first_time_ns = times_.FirstTime(facts_.base_time_ns).value_or(facts_.base_time_ns);
}

void TraceFileScan::EndMapping() {
  if (facts_.complete && !has_version_) Refuse("the mapping file has no version");
  if (facts_.problem.empty() && facts_.elements > limits::kMappingEntriesMax) {
    facts_.problem = fmt::format("the file has {} entries; only the first {} are read",
                                 facts_.elements, limits::kMappingEntriesMax);
  }
}

// A file that is no trace is refused; otherwise it would count as a trace without events.
void TraceFileScan::EndTrace() {
  const bool is_blank = file_->bytes_read() == first_bytes_.size() &&
                        first_bytes_.find_first_not_of(" \t\r\n") == std::string::npos;
  if (is_blank) {
    facts_.complete = false;  // it may be about to be written
    facts_.problem = "the file is empty";
  } else if (facts_.elements > 0) {
    if (!has_event_) {
      Refuse(
          fmt::format("not a trace: none of its {} elements has a phase, \"ph\"", facts_.elements));
    }
  } else if (facts_.complete && !cutter_.has_array()) {
    Refuse("not a trace: JSON without a list \"traceEvents\"");
  } else if (!facts_.complete && !cutter_.has_array() && is_malformed_) {
    Refuse(fmt::format("not a trace: {}", DescribeContent(first_bytes_)));
  } else if (facts_.complete && !cutter_.is_closed()) {
    facts_.complete = false;
    facts_.problem = "the file ends before its first event";
  }
}

}  // namespace neurontrace
