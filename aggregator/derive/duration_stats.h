// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/derive/duration_sketch.h"
#include "aggregator/timeline/timeline_reader.h"
#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// What one stream had of one event type. A plain value.
struct DurationRow {
  std::string event_type;
  uint32_t stream = 0;
  // Spans with a known start and stop.
  DurationSketch spans;
  // Spans without a stop: not in `spans`.
  uint64_t open = 0;
  // Spans without a start: not in `spans`.
  uint64_t start_lost = 0;
  // Spans with an impossible length (kInvalidLength): not in `spans`.
  uint64_t anomalous = 0;
  uint64_t instants = 0;

  uint64_t count() const { return spans.count() + open + start_lost + anomalous + instants; }
};

// Durations by event type and stream. A span that a time window cuts counts with its whole length.
// Used by one thread at a time.
class DurationStats {
 public:
  // Beyond these limits events are counted under kOther: those of further types for each stream,
  // and those of further pairs of type and stream under kOtherStream.
  static constexpr size_t kTypesMax = 4'096;
  static constexpr size_t kRowsMax = 262'144;
  static constexpr const char* kOther = "(other)";
  static constexpr uint32_t kOtherStream = 0xffffffffu;

  // Records other than spans, instants and other events are skipped.
  void Take(const TimelineBatch& batch);
  // Returns the rows by event type, then stream. Called once.
  std::vector<DurationRow> Finish();
  // Events counted under kOther.
  uint64_t overflow() const { return overflow_; }

 private:
  // Returns the row to count in, which may be the common one of a limit.
  DurationRow& RowOf(const TimelineRecord& record);
  uint32_t TypeOf(const SharedShape& shape);

  absl::flat_hash_map<std::string, uint32_t> types_;
  std::vector<uint32_t> type_of_shape_;        // by SharedShape::number; 0: not known yet
  std::vector<std::vector<uint32_t>> row_of_;  // by stream, type: index + 1; 0: none
  std::vector<DurationRow> rows_;
  uint64_t overflow_ = 0;
};

}  // namespace neurontrace
