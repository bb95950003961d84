// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "lib/clock/host_clocks.h"

namespace neurontrace {

// Clocks of tests: they advance by AdvanceNs alone, and a test steps, slews and suspends them. All
// values in ns. One thread.
class FakeHostClocks final : public HostClocks {
 public:
  uint64_t RawNs() const override { return raw_ns_; }
  ClockSnapshot ReadOnce() const override {
    const uint64_t bracket_ns = brackets_ns_[reads_++ % kBrackets];
    return {.raw_begin_ns = raw_ns_,
            .raw_end_ns = raw_ns_ + bracket_ns,
            .realtime_ns = realtime_ns_ + bracket_ns / 2,
            .monotonic_ns = monotonic_ns_ + bracket_ns / 2,
            .boottime_ns = boottime_ns_ + bracket_ns / 2};
  }
  void ReadSteering(ClockSnapshot& snapshot) const override {
    snapshot.frequency = frequency_;
    snapshot.tick_us = 10'000;
    snapshot.status = status_;
    snapshot.tai_offset_s = 37;
  }

  // Advances raw by `raw_ns`, and the steered clocks by that and their slew. The fraction of a ns
  // is carried to the next call.
  void AdvanceNs(uint64_t raw_ns) {
    raw_ns_ += raw_ns;
    const double extra = static_cast<double>(raw_ns) * slew_ + carry_ns_;
    const double whole = std::floor(extra);
    carry_ns_ = extra - whole;
    const uint64_t steered = raw_ns + static_cast<uint64_t>(static_cast<int64_t>(whole));
    realtime_ns_ += steered;
    monotonic_ns_ += steered;
    boottime_ns_ += steered;
  }
  // Sets REALTIME as settimeofday does.
  void StepRealtimeNs(int64_t ns) { realtime_ns_ += static_cast<uint64_t>(ns); }
  // Suspends the machine: raw and MONOTONIC do not count meanwhile.
  void SuspendNs(uint64_t ns) {
    boottime_ns_ += ns;
    realtime_ns_ += ns;
  }
  // Lets REALTIME and MONOTONIC run faster than raw by `ppm` from now on, as adjtimex reports it.
  void SteerPpm(double ppm) {
    slew_ = ppm * 1e-6;
    frequency_ = static_cast<int64_t>(ppm * 65'536);
  }
  // Does the same without adjtimex reporting it.
  void SlewUnseenPpm(double ppm) {
    slew_ = static_cast<double>(frequency_) / 65'536e6 + ppm * 1e-6;
  }
  // Sets what adjtimex reports as its status (STA_*).
  void SetStatus(uint32_t status) { status_ = status; }
  // Sets the widths of the next brackets, used in turn.
  void SetBrackets(uint64_t first, uint64_t second, uint64_t third, uint64_t fourth) {
    brackets_ns_[0] = first;
    brackets_ns_[1] = second;
    brackets_ns_[2] = third;
    brackets_ns_[3] = fourth;
    reads_ = 0;
  }
  // Returns how often ReadOnce was called since the brackets were set.
  int reads() const { return reads_; }
  uint64_t realtime_ns() const { return realtime_ns_; }

 private:
  // The widths of brackets repeat after this many readings.
  static constexpr int kBrackets = 4;
  uint64_t raw_ns_ = 5'000'000'000;
  uint64_t realtime_ns_ = 1'700'000'000'000'000'000;
  uint64_t monotonic_ns_ = 5'000'100'000;
  uint64_t boottime_ns_ = 5'000'100'000;
  // How much faster than raw the steered clocks run, as a fraction, and what AdvanceNs has not yet
  // added of it.
  double slew_ = 0;
  double carry_ns_ = 0;
  int64_t frequency_ = 0;
  uint32_t status_ = 0;
  uint64_t brackets_ns_[kBrackets] = {100, 100, 100, 100};
  mutable int reads_ = 0;
};

}  // namespace neurontrace
