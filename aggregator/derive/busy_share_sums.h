// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "aggregator/derive/executions.h"

namespace neurontrace {

// How much of a time window one core ran executions. A plain value.
struct BusyShare {
  uint32_t stream = 0;
  ExecutionSource source = ExecutionSource::kDevice;  // kRuntime: the device's events are missing
  uint64_t executions = 0;
  // The length of the union of their intervals, inside the window.
  uint64_t busy_ns = 0;
  uint64_t open = 0;  // executions without an end: not in busy_ns
  // Executions that came out of order beyond kIntervalsMax: their part before that is not in
  // busy_ns.
  uint64_t joined_late = 0;

  double Of(uint64_t window_ns) const {
    return window_ns == 0 ? 0 : static_cast<double>(busy_ns) / static_cast<double>(window_ns);
  }
};

// Sums the busy time of each core; executions that overlap count once. They must be added in the
// order in which ExecutionFinder returns them. Used by one thread at a time.
class BusyShareSums {
 public:
  // Intervals held for one core, because executions come in the order of their ends. Beyond, the
  // earliest is added to the sum.
  static constexpr size_t kIntervalsMax = 64;

  // Only what lies inside the window counts.
  BusyShareSums(size_t streams, uint64_t window_start_ns, uint64_t window_end_ns);

  // Cuts the execution to the window. An open one is only counted.
  void Add(const Execution& execution);
  // Returns a share for each core with an execution, by stream: that of the device if it has any.
  // Called once.
  std::vector<BusyShare> Finish();

 private:
  struct Interval {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
  };
  struct Sum {
    BusyShare share;
    std::vector<Interval> held;  // disjoint, ascending
    uint64_t summed_until_ns = 0;
  };
  // Adds an interval to the held ones and merges those that touch.
  static void Hold(Interval interval, Sum& sum);
  // Adds the earliest interval to the sum and forgets it.
  static void SumFirst(Sum& sum);

  const uint64_t window_start_ns_;
  const uint64_t window_end_ns_;
  std::vector<Sum> device_;
  std::vector<Sum> runtime_;
};

}  // namespace neurontrace
