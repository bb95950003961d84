// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "aggregator/align/core/clock_map.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// How far the times of a timeline's records can be from the truth. Records should come roughly in
// the order of time. The streams must outlive it; one thread at a time.
class RecordBounds {
 public:
  // What is known of one start, for when the record itself is gone. A plain value.
  struct Moment {
    std::optional<uint64_t> bound_ns;  // how far it can be from the truth; nullopt: not known
    std::optional<uint64_t> own_ns;    // of this, what is not its host's clock's
    uint32_t clock = 0;                // the same number: one host's clock
  };

  explicit RecordBounds(std::span<const TimelineStream> streams);

  Moment Keep(const TimelineRecord& record);
  // Of the record's start; nullopt: not known.
  std::optional<uint64_t> Of(const TimelineRecord& record);

  // Which of two began first is known where their starts lie further apart than this. What
  // both took from one host's clock is not in it, because that clock alone says their order.
  static std::optional<uint64_t> OfOrder(const Moment& a, const Moment& b);
  std::optional<uint64_t> OfOrder(const TimelineRecord& a, const TimelineRecord& b) {
    return OfOrder(Keep(a), Keep(b));
  }

 private:
  std::vector<ClockMapCursor> clocks_;  // by stream
  std::vector<uint32_t> numbers_;       // of the host's clock, by stream
};

}  // namespace neurontrace
