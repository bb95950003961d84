// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "lib/base/clock.h"

namespace neurontrace {

// Records when a sequence last ran a task, for other threads that check whether it still runs.
// Values that the sequence publishes itself would stay the same if it hung. A repeating task of the
// sequence calls Turn; DaemonMetrics and a condition of HealthState read the age. Before its first
// turn there is no age. AgeNs and DescribeStuck: any thread.
class LoopWatchdog {
 public:
  // `clock` must outlive this.
  explicit LoopWatchdog(const Clock& clock) : clock_(clock) {}

  // Called by a task that repeats at least once a second.
  void Turn() { turn_ns_ = clock_.MonotonicNs(); }
  // Called on the sequence before work that may take long: until the next turn there is no age.
  void Rest() { turn_ns_ = 0; }

  // Returns the time since the last turn in ns; nullopt if there was none, or Rest was called.
  std::optional<uint64_t> AgeNs() const;
  // Returns a message if no task has run for longer than limits::kSequenceStuckNs, else "". For
  // HealthState::Watch.
  std::string DescribeStuck() const;

 private:
  const Clock& clock_;
  // Written by the sequence, read by the threads of HealthServer.
  std::atomic<uint64_t> turn_ns_ = 0;  // monotonic; 0: none
};

}  // namespace neurontrace
