// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "aggregator/derive/executions.h"

namespace neurontrace {

// How much of a time window one core ran executions. A plain value.
struct BusyShare {
  uint32_t stream = 0;
  ExecutionSource source = ExecutionSource::kDevice;  // kRuntime: the device's events are not there
  uint64_t executions = 0;
  uint64_t busy_ns = 0;  // the union of their intervals, inside the window
  uint64_t open = 0;     // executions without an end: not in busy_ns
  // Came out of order beyond what is held: what of them lies before that is not in busy_ns.
  uint64_t joined_late = 0;

  double Of(uint64_t window_ns) const {
    return window_ns == 0 ? 0 : static_cast<double>(busy_ns) / static_cast<double>(window_ns);
  }
};

// Sums the busy time of each core. Two executions that overlap count once. Executions must be given
// as ExecutionFinder gives them out. One thread at a time.
class BusyShareSums {
 public:
  // Intervals held of one core, because executions come in the order of their ends. Beyond, the
  // earliest is summed.
  static constexpr size_t kIntervalsMax = 64;

  // Only what lies between these counts.
  BusyShareSums(size_t streams, uint64_t window_start_ns, uint64_t window_end_ns);

  void Add(const Execution& execution);
  // Of every core that had an execution, by stream: the device's where it had any.
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
  static void Hold(Interval interval, Sum& sum);
  static void SumFirst(Sum& sum);

  const uint64_t window_start_ns_;
  const uint64_t window_end_ns_;
  std::vector<Sum> device_;
  std::vector<Sum> runtime_;
};

}  // namespace neurontrace
