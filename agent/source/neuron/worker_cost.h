// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "agent/source/neuron/overhead_governor.h"

namespace neurontrace {

// The processor time of the calling thread, of which TapWorker takes two readings a turn.
uint64_t ReadThreadCpuNs();

// What one worker costs this machine: the tap's drain rounds, by its own account (time on the
// clock, the runtime's fetch included: more than it used, where it had to wait for a processor),
// and the agent's time on what the tap wrote. A tap's account is not trusted: it is one thread, so
// no more than all of the time since it was last looked at. A plain value.
class WorkerCost {
 public:
  void AddAgent(uint64_t ns) { core_ns_ += ns; }
  // `tap_ns`: the tap's own counter; `bytes`: of chunks, so far.
  void Observe(uint64_t now_ns, uint64_t tap_ns, uint64_t bytes);

  uint64_t core_ns() const { return core_ns_; }
  // Over about a second; nothing before one has passed.
  const std::optional<OverheadCost>& recent() const { return recent_; }

 private:
  static constexpr uint64_t kRecentNs = 1'000'000'000;

  bool seen_ = false;
  uint64_t seen_ns_ = 0;
  uint64_t tap_ns_ = 0;
  uint64_t core_ns_ = 0;
  uint64_t marked_ns_ = 0;
  OverheadTotals marked_;
  std::optional<OverheadCost> recent_;
};

}  // namespace neurontrace
