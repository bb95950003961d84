// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/derive/duration_sketch.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// What one worker's stream had of one event type. A plain value.
struct DurationRow {
  std::string event_type;
  uint32_t stream = 0;
  DurationSketch spans;     // those whose start and stop are both known
  uint64_t open = 0;        // spans without a stop: not in `spans`
  uint64_t start_lost = 0;  // spans without a start: likewise
  uint64_t odd = 0;         // spans whose length cannot be (kOddLength), counted apart
  uint64_t instants = 0;

  uint64_t count() const { return spans.count() + open + start_lost + odd + instants; }
};

// Durations by event type and stream. A span that a time window cuts counts with its whole length.
// One thread at a time.
class DurationStats {
 public:
  // Beyond, events are counted under kOther: of further types for each stream, and of further pairs
  // of type and stream for the stream 0xffffffff.
  static constexpr size_t kTypesMax = 4'096;
  static constexpr size_t kRowsMax = 262'144;
  static constexpr const char* kOther = "(other)";
  static constexpr uint32_t kOtherStream = 0xffffffffu;

  void Take(const TimelineBatch& batch);
  // By event type, then stream.
  std::vector<DurationRow> Finish();
  uint64_t overflow() const { return overflow_; }  // events counted under kOther

 private:
  DurationRow& RowOf(const TimelineRecord& record);
  uint32_t TypeOf(const SharedShape& shape);

  absl::flat_hash_map<std::string, uint32_t> types_;
  std::vector<uint32_t> type_of_shape_;        // by SharedShape::number; 0: not known yet
  std::vector<std::vector<uint32_t>> row_of_;  // by stream, type: index + 1; 0: none
  std::vector<DurationRow> rows_;
  uint64_t overflow_ = 0;
};

}  // namespace neurontrace
