// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "agent/source/framework/element_cutter.h"
#include "agent/source/framework/time_census.h"
#include "agent/source/framework/trace_event_parser.h"
#include "agent/source/framework/trace_file.h"

namespace neurontrace {

// What must be known of a trace file before its events can be read. Kineto writes
// "baseTimeNanoseconds" after the events, so that this takes a first reading of the whole file.
struct TraceFileFacts {
  bool complete = false;      // ends as a trace file should
  std::string problem;        // why not, or why it is refused, for people
  bool is_mapping = false;    // a mapping file: its elements are entries of "data"
  bool is_refused = false;    // nothing of it is read, though it may be complete
  uint64_t base_time_ns = 0;  // "baseTimeNanoseconds"; 0: times count from the epoch
  // Of the first event that has a time; 0 without any. Of a mapping file, where nothing has one:
  // when it was changed last, so that what it maps was before.
  uint64_t first_time_ns = 0;
  uint64_t elements = 0;              // of traceEvents, or of data
  std::optional<int64_t> rank;        // distributedInfo.rank
  std::optional<int64_t> world_size;  // distributedInfo.world_size
  std::string rank_problem;           // what these two say where it is no rank; for people
  TimeBounds time_bounds;             // which times its events can have
};

// The first reading, in steps, so that a large file does not hold up the sequence it is read on.
class TraceFileScan {
 public:
  // `root`: see TraceFile::Open.
  static absl::StatusOr<TraceFileScan> Open(const std::string& path, const std::string& root = "");

  // The member of a file of this name that holds its elements.
  static std::string_view ArrayKeyOf(std::string_view path);

  // Reads about `bytes` more, or less where that is much work; true when there is nothing more to
  // read. Never fails: a broken file has facts too.
  bool Step(uint64_t bytes);
  const TraceFileFacts& facts() const { return facts_; }

 private:
  TraceFileScan(TraceFile file, const std::string& path);
  void TakeMember(const ElementCutter::Piece& piece);
  void TakeBase(std::string_view token);
  void TakeDistributedInfo(std::string_view text);
  void TakeMappingMember(const ElementCutter::Piece& piece);
  void Refuse(std::string_view why);
  void TakeElement(std::string_view element);
  bool End(std::string problem);
  void EndMapping();

  std::unique_ptr<TraceFile> file_;
  ElementCutter cutter_;
  TraceEventParser parser_;  // without a base: only for the times
  TimeCensus times_;
  bool has_version_ = false;  // of a mapping file
  std::string refusal_;
  TraceFileFacts facts_;
};

}  // namespace neurontrace
