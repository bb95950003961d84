// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// The true time of the simulation, in ns: what the process was given as that
// (tests/e2e/clocks/shifted_clock.cc), or else CLOCK_REALTIME.
int64_t TrueNow();

// Waits that one Raise() ends for all threads, for good. Any thread may call.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  void Raise();
  // Sleeps until this moment of true time; true at once when raised.
  bool WaitUntil(int64_t true_ns) const;
  // Becomes readable when raised.
  int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace neurontrace
