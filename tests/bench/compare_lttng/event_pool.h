// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tests/bench/compare_lttng/producer.h"

namespace neurontrace {

// The seeded event stream of one process: some executions of each core, made in advance so that
// making them costs the measurement nothing, and repeated with identifiers and times that continue.
class EventPool {
 public:
  EventPool(uint64_t seed, uint32_t cores, uint32_t first_gid);

  uint32_t cores() const { return static_cast<uint32_t>(cores_.size()); }

  // Times of the next events begin at `begin_ns` and advance so that `rate` events a second, over
  // all cores, take a second.
  void Pace(uint64_t begin_ns, double rate);
  // The next event of a core.
  const compare_event& Next(uint32_t core);

 private:
  struct Core {
    std::vector<compare_event> events;
    std::vector<uint64_t> offsets_ns;  // of the events, from the first one on, as the mix has them
    uint64_t period_ns = 0;            // of one repetition, also
    uint64_t spans = 0;                // tracking ids of one repetition
    uint64_t emitted = 0;
    uint64_t paced_at = 0;  // `emitted` when Pace was called last
    compare_event current = {};
  };

  std::vector<Core> cores_;
  uint64_t begin_ns_ = 0;
  std::vector<double> time_scale_;  // per core
};

}  // namespace neurontrace
