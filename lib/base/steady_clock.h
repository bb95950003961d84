// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace neurontrace {

// The time of day that does not step: CLOCK_BOOTTIME plus an offset that follows another clock's
// RealtimeNs, but never faster than kSlewPpm, which is as fast as the kernel slews a clock. It
// never goes back, and a difference of two of its readings is a duration within kSlewPpm. While the
// other clock is kStepNs or more away, because somebody has set it, the offset does not change at
// all.
//
// For stamps that are stored and compared, not for the validity of certificates or tokens. It has
// to be read at least every few seconds, as it slews only when it is read. Any thread.
class SteadyClock final : public Clock {
 public:
  // The fastest slew, in parts per million of the time that has passed.
  static constexpr int64_t kSlewPpm = 1'000;
  static constexpr int64_t kNoticedNs = 1'000'000'000;  // what counts as a step
  static constexpr int64_t kStepNs = 60'000'000'000;    // what is not followed

  // `system` must outlive this. `offset_ns`: the value that OffsetNs returned in an earlier process
  // since the machine started, to be continued; without it the offset is that of `system` now.
  explicit SteadyClock(const Clock& system, std::optional<int64_t> offset_ns = std::nullopt);

  uint64_t RealtimeNs() const override;
  uint64_t MonotonicNs() const override { return system_.MonotonicNs(); }
  uint64_t BoottimeNs() const override { return system_.BoottimeNs(); }

  // Returns how far the other clock is ahead (negative: behind) if it is at least kNoticedNs, else
  // 0.
  int64_t StepNs() const;
  // Returns how often the other clock was set since the start, each time by kNoticedNs or more.
  uint64_t steps() const;
  // Returns RealtimeNs minus BoottimeNs, for a later process to continue with. Meaningless after a
  // restart of the machine.
  int64_t OffsetNs() const;
  // Continues with this offset or, without one, with the time of the other clock. The only way in
  // which this clock steps.
  void SetOffset(std::optional<int64_t> offset_ns);

 private:
  struct Reading {
    uint64_t realtime_ns = 0;  // of the other clock
    uint64_t boottime_ns = 0;
  };
  // Reads both clocks of `system`, close together.
  Reading Read() const;
  // Slews the offset for a reading and returns the steady time of that reading.
  uint64_t Update(const Reading& reading) const NT_REQUIRES(mutex_);

  const Clock& system_;
  mutable Mutex mutex_;
  mutable int64_t offset_ns_ NT_GUARDED_BY(mutex_) = 0;  // to be added to BoottimeNs
  // The time of the last reading, from which the slew is limited.
  mutable uint64_t read_boottime_ns_ NT_GUARDED_BY(mutex_) = 0;
  mutable int64_t ahead_ns_ NT_GUARDED_BY(mutex_) = 0;  // of the other clock, as read last
  mutable uint64_t steps_ NT_GUARDED_BY(mutex_) = 0;
};

}  // namespace neurontrace
