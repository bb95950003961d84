// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace neurontrace {

// The aggregator's timescale. True time is measured on it: how the host and the aggregator wander
// against each other is all in the host's clock. A restart begins a new epoch, which the timescale
// enters with a step. Constant after construction: any thread may read it.
class ReferenceClock {
 public:
  struct Restart {
    int64_t at_ns = 0;    // true time: no answers from here on
    int64_t down_ns = 0;  // for so long
    int64_t step_ns = 0;  // what the new epoch is ahead of the one before
  };

  ReferenceClock(uint64_t origin_ns, std::vector<Restart> restarts);

  uint64_t Read(int64_t true_ns) const;
  uint32_t EpochAt(int64_t true_ns) const;
  bool IsUp(int64_t true_ns) const;
  const std::vector<Restart>& restarts() const { return restarts_; }

 private:
  uint64_t origin_ns_;
  std::vector<Restart> restarts_;
};

}  // namespace neurontrace
