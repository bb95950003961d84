// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// What time it is. Abstract so tests advance time and never wait for it.
// All methods may be called from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  // Nanoseconds since the Unix epoch (CLOCK_REALTIME): may step, for labels and for what people
  // read.
  virtual uint64_t RealtimeNs() const = 0;
  // Nanoseconds since an arbitrary point (CLOCK_MONOTONIC): for durations and deadlines.
  virtual uint64_t MonotonicNs() const = 0;
};

// The machine's own clocks.
class SystemClock final : public Clock {
 public:
  uint64_t RealtimeNs() const override;
  uint64_t MonotonicNs() const override;
};

// Stands still until told otherwise. Not for concurrent use while it is being set.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(uint64_t realtime_ns = 1'700'000'000'000'000'000)
      : realtime_ns_(realtime_ns) {}
  uint64_t RealtimeNs() const override { return realtime_ns_; }
  uint64_t MonotonicNs() const override { return monotonic_ns_; }
  void AdvanceNs(uint64_t ns) {
    realtime_ns_ += ns;
    monotonic_ns_ += ns;
  }

 private:
  uint64_t realtime_ns_;
  uint64_t monotonic_ns_ = 1'000'000'000;
};

}  // namespace neurontrace
