// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "lib/base/clock.h"

namespace neurontrace {

// When a sequence of tasks last had a turn, for threads that ask whether it still runs: what it
// publishes itself stays as it was when it hangs. Before its first turn there is no age.
class LoopWatchdog {
 public:
  explicit LoopWatchdog(const Clock& clock) : clock_(clock) {}  // outlives this

  // By a task that comes back at least once a second.
  void Turn() { turn_ns_ = clock_.MonotonicNs(); }
  // On the sequence, before what may well take long: until the next turn there is no age.
  void Rest() { turn_ns_ = 0; }

  // Any thread. Since the last turn.
  std::optional<uint64_t> AgeNs() const;
  // Any thread. Returns a message if no task has run for longer than limits::kSequenceStuckNs, else
  // an empty string.
  std::string DescribeStuck() const;

 private:
  const Clock& clock_;
  std::atomic<uint64_t> turn_ns_ = 0;  // monotonic; 0: none
};

}  // namespace neurontrace
