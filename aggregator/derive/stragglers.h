// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "aggregator/derive/collectives.h"
#include "aggregator/derive/duration_sketch.h"

namespace neurontrace {

// How one core met the others in collectives. A plain value.
struct StragglerRow {
  uint32_t stream = 0;
  uint64_t collectives = 0;            // that it was in with others
  uint64_t last = 0;                   // in so many of these it arrived last
  uint64_t last_known = 0;             // of these: by more than the clocks' bound
  DurationSketch lateness;             // of those in `last_known`: behind the median arrival
  uint64_t lateness_bound_max_ns = 0;  // the largest bound of these
  uint64_t lateness_unbounded = 0;     // of these: how far it can be off is not known
  DurationSketch waits;                // from its arrival to the last one's, of all
  uint64_t absent = 0;                 // collectives that it was missing from
};

// Counts who arrives last in collectives. Those of one member, and those whose members cannot have
// met, are passed over. One thread at a time.
class Stragglers {
 public:
  explicit Stragglers(size_t streams) : rows_(streams) {}

  void Add(const Collective& collective);
  // `absences` are those of the CollectiveFinder. Of the streams that were in any, or missing; the
  // largest sum of known lateness first.
  std::vector<StragglerRow> Finish(std::span<const uint64_t> absences);

 private:
  std::vector<StragglerRow> rows_;  // by stream
};

}  // namespace neurontrace
