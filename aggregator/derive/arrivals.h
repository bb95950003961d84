// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "aggregator/derive/collectives.h"
#include "aggregator/derive/duration_sketch.h"

namespace neurontrace {

// How one core met the others in collectives. Says when it arrived, not why: a core can be late
// because of another one (aggregator/insight names causes). A plain value.
struct ArrivalRow {
  uint32_t stream = 0;
  // Those that it was in with others.
  uint64_t collectives = 0;
  // Those of them in which it arrived last.
  uint64_t last = 0;
  // Those of `last` in which this is certain despite the clocks' bound.
  uint64_t last_known = 0;
  // Behind the median arrival, for those in last_known.
  DurationSketch lateness;
  // The largest error bound of these.
  uint64_t lateness_bound_max_ns = 0;
  // Those in last_known without a known error bound.
  uint64_t lateness_unbounded = 0;
  // From its arrival to that of the last one, for all in `collectives`.
  DurationSketch waits;
  // Collectives that it was missing from.
  uint64_t absent = 0;
};

// Counts who arrives last in collectives. Skips those of one member and those whose members cannot
// have met. Used by one thread at a time.
class Arrivals {
 public:
  explicit Arrivals(size_t streams) : rows_(streams) {}

  void Add(const Collective& collective);
  // Returns the streams that were in any, or missing, with the largest sum of known lateness first.
  // `absences` are those of the CollectiveFinder. Called once.
  std::vector<ArrivalRow> Finish(std::span<const uint64_t> absences);

 private:
  std::vector<ArrivalRow> rows_;  // by stream
};

}  // namespace neurontrace
