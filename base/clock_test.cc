// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace neurontrace {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kHourNs = 3'600 * kSecondNs;

TEST(SteadyClock, FollowsWhatNtpDoes) {
  FakeClock system;
  const SteadyClock clock(system);
  for (int i = 0; i < 100'000; ++i) {
    system.AdvanceNs(kSecondNs);
    system.StepRealtimeNs(i % 2 == 0 ? 500'000 : 400'000);  // 450 ppm
    ASSERT_EQ(clock.RealtimeNs(), system.RealtimeNs());
  }
  system.StepRealtimeNs(-30 * kSecondNs);
  EXPECT_EQ(clock.RealtimeNs(), system.RealtimeNs());
  EXPECT_EQ(clock.StepNs(), 0);
  EXPECT_EQ(clock.steps(), 0u);
}

TEST(SteadyClock, DoesNotFollowWhoSetsTheClock) {
  for (const int64_t step_ns : {-2 * kHourNs, 10 * 24 * kHourNs, -kHourNs / 60, kHourNs / 60}) {
    FakeClock system;
    const SteadyClock clock(system);
    const uint64_t before_ns = clock.RealtimeNs();
    system.StepRealtimeNs(step_ns);
    EXPECT_EQ(clock.RealtimeNs(), before_ns);
    system.AdvanceNs(kHourNs);
    EXPECT_EQ(clock.RealtimeNs(), before_ns + kHourNs);
    EXPECT_EQ(clock.StepNs(), step_ns);
    EXPECT_EQ(clock.steps(), 1u);
    // Set right again, almost.
    system.StepRealtimeNs(-step_ns + 5 * kSecondNs);
    EXPECT_EQ(clock.RealtimeNs(), system.RealtimeNs());
    EXPECT_EQ(clock.StepNs(), 0);
    EXPECT_EQ(clock.steps(), 1u);
  }
}

TEST(SteadyClock, IsContinuedByALaterProcess) {
  FakeClock system;
  int64_t offset_ns = 0;
  uint64_t before_ns = 0;
  {
    const SteadyClock clock(system);
    system.StepRealtimeNs(10 * 24 * kHourNs);
    before_ns = clock.RealtimeNs();
    offset_ns = clock.OffsetNs();
  }
  system.AdvanceNs(kHourNs);
  SteadyClock clock(system, offset_ns);
  EXPECT_EQ(clock.RealtimeNs(), before_ns + kHourNs);
  EXPECT_EQ(clock.StepNs(), 10 * 24 * kHourNs);
  clock.SetOffset(std::nullopt);
  EXPECT_EQ(clock.RealtimeNs(), system.RealtimeNs());
  EXPECT_EQ(clock.StepNs(), 0);
}

// A process that is stopped between two readings sees no step.
class StoppedClock final : public Clock {
 public:
  uint64_t RealtimeNs() const override { return kEpochNs + now_ns_; }
  uint64_t MonotonicNs() const override { return now_ns_; }
  uint64_t BoottimeNs() const override {
    if (stops_in_ > 0 && --stops_in_ == 0) now_ns_ += kHourNs;
    return now_ns_;
  }
  void StopIn(int readings) { stops_in_ = readings; }

 private:
  static constexpr uint64_t kEpochNs = 1'700'000'000'000'000'000;
  mutable uint64_t now_ns_ = kSecondNs;
  mutable int stops_in_ = 0;
};

TEST(SteadyClock, TakesBeingStoppedForNoStep) {
  for (const int reading : {1, 2}) {
    StoppedClock system;
    const SteadyClock clock(system);
    system.StopIn(reading);
    clock.RealtimeNs();
    EXPECT_EQ(clock.RealtimeNs(), system.RealtimeNs());
    EXPECT_EQ(clock.steps(), 0u) << reading;
  }
}

}  // namespace
}  // namespace neurontrace
