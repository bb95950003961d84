// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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
  // The time in device executions without that in collectives and barriers of the device, where the
  // core may wait for others. nullopt: the device's executions are missing.
  std::optional<uint64_t> own_ns;

  double Of(uint64_t window_ns) const { return ShareOf(busy_ns, window_ns); }
  // Of own work; nullopt where that is unknown.
  std::optional<double> OwnOf(uint64_t window_ns) const {
    if (!own_ns) return std::nullopt;
    return ShareOf(*own_ns, window_ns);
  }

 private:
  static double ShareOf(uint64_t ns, uint64_t window_ns) {
    return window_ns == 0 ? 0 : static_cast<double>(ns) / static_cast<double>(window_ns);
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
  // Add the time of one device event, in the order of their starts: a run of an execution, or a
  // collective or barrier. They are cut to the window.
  void AddRun(uint32_t stream, uint64_t start_ns, uint64_t end_ns);
  void AddMeeting(uint32_t stream, uint64_t start_ns, uint64_t end_ns);
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
  // The length of a union of intervals that come in the order of their starts.
  struct Cover {
    uint64_t ns = 0;
    uint64_t until_ns = 0;
    void Add(Interval interval);
  };
  // Own work is what runs and meetings cover together, without the meetings.
  struct OwnWork {
    Cover either;
    Cover meetings;
  };
  Interval CutToWindow(uint64_t start_ns, uint64_t end_ns) const;
  // Adds an interval to the held ones and merges those that touch.
  static void Hold(Interval interval, Sum& sum);
  // Adds the earliest interval to the sum and forgets it.
  static void SumFirst(Sum& sum);

  const uint64_t window_start_ns_;
  const uint64_t window_end_ns_;
  std::vector<Sum> device_;
  std::vector<Sum> runtime_;
  std::vector<OwnWork> own_;  // by stream
};

}  // namespace neurontrace
