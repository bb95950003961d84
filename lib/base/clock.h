// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// Time, in ns. Abstract so that tests advance time and never wait for it. All methods may be called
// from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  // Nanoseconds since the Unix epoch (CLOCK_REALTIME). May step in either direction: for labels and
  // for what people read, never for durations.
  virtual uint64_t RealtimeNs() const = 0;
  // Nanoseconds since an arbitrary point (CLOCK_MONOTONIC): for durations and deadlines within one
  // process.
  virtual uint64_t MonotonicNs() const = 0;
  // Nanoseconds since the machine started (CLOCK_BOOTTIME): like MonotonicNs, but it also counts
  // while the machine is suspended, as RealtimeNs does.
  virtual uint64_t BoottimeNs() const = 0;
};

// The clocks of the machine, by clock_gettime(2). Stateless: an instance costs nothing.
class SystemClock final : public Clock {
 public:
  uint64_t RealtimeNs() const override;
  uint64_t MonotonicNs() const override;
  uint64_t BoottimeNs() const override;
};

// A clock of tests: advances only when a test sets it. Must not be read on one thread while another
// sets it.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(uint64_t realtime_ns = 1'700'000'000'000'000'000)
      : realtime_ns_(realtime_ns) {}
  uint64_t RealtimeNs() const override { return realtime_ns_; }
  uint64_t MonotonicNs() const override { return monotonic_ns_; }
  uint64_t BoottimeNs() const override { return monotonic_ns_; }
  void AdvanceNs(uint64_t ns) {
    realtime_ns_ += ns;
    monotonic_ns_ += ns;
  }
  // Changes the time of day as an operator does; no time passes.
  void StepRealtimeNs(int64_t ns) { realtime_ns_ += static_cast<uint64_t>(ns); }

 private:
  uint64_t realtime_ns_;
  uint64_t monotonic_ns_ = 1'000'000'000;
};

}  // namespace neurontrace
