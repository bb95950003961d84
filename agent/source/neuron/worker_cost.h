// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "agent/source/neuron/capture/overhead_governor.h"

namespace neurontrace {

// Measures what tracing one worker costs this machine in processor time: the drain rounds of its
// tap, by the tap's own counter, which includes the runtime's fetches, and the agent's time for
// what the tap wrote. The tap's counter is not trusted: a tap is one thread, so it counts as at
// most the time since the last look. A plain value.
class WorkerCost {
 public:
  void AddAgent(uint64_t ns) { core_ns_ += ns; }
  // `now_ns`: monotonic. `tap_ns`: the tap's counter. `bytes`: of chunks so far. A counter that
  // runs backwards counts as unchanged; a clock that does restarts the measurement.
  void Observe(uint64_t now_ns, uint64_t tap_ns, uint64_t bytes);

  uint64_t core_ns() const { return core_ns_; }
  // Returns the cost over about a second; nothing before one has passed.
  const std::optional<OverheadCost>& recent() const { return recent_; }

 private:
  static constexpr uint64_t kRecentNs = 1'000'000'000;

  // Whether Observe was called, and the time and the tap's counter of the last call.
  bool seen_ = false;
  uint64_t seen_ns_ = 0;
  uint64_t tap_ns_ = 0;
  // What tap and agent have cost so far, in ns of one processor.
  uint64_t core_ns_ = 0;
  // Where the current measurement of `recent_` began.
  uint64_t marked_ns_ = 0;
  OverheadTotals marked_;
  std::optional<OverheadCost> recent_;
};

}  // namespace neurontrace
