// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "aggregator/align/clock_map.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// How far the times of a timeline's records can be from the truth. Records should come roughly in
// the order of time. The streams must outlive it; one thread at a time.
class RecordBounds {
 public:
  explicit RecordBounds(std::span<const TimelineStream> streams);

  // Of the record's start; nullopt: not known.
  std::optional<uint64_t> Of(const TimelineRecord& record);

  // Which of two records began first is known where their starts lie further apart than this. What
  // both took from one host's clock is not in it, because that clock alone says their order.
  std::optional<uint64_t> OfOrder(const TimelineRecord& a, const TimelineRecord& b);

 private:
  bool ShareHostClock(const TimelineRecord& a, const TimelineRecord& b) const;

  std::span<const TimelineStream> streams_;
  std::vector<ClockMapCursor> clocks_;  // by stream
};

}  // namespace neurontrace
