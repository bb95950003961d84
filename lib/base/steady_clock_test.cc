// SPDX-License-Identifier: Apache-2.0
#include "lib/base/steady_clock.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>

#include "lib/base/clock.h"

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
  EXPECT_EQ(clock.StepNs(), 0);
  EXPECT_EQ(clock.steps(), 0u);
}

// By a difference of its readings nobody would know that the clock was set.
TEST(SteadyClock, GoesAfterSmallStepsSlowly) {
  for (const int64_t step_ns : {-30 * kSecondNs, -3 * kSecondNs, 30 * kSecondNs, kSecondNs / 100}) {
    FakeClock system;
    const SteadyClock clock(system);
    const uint64_t before_ns = clock.RealtimeNs();
    system.AdvanceNs(2 * kSecondNs);
    system.StepRealtimeNs(step_ns);
    system.AdvanceNs(4 * kSecondNs);
    const auto error_ns = static_cast<int64_t>(clock.RealtimeNs() - before_ns) - 6 * kSecondNs;
    EXPECT_LE(std::abs(error_ns), 6 * kSecondNs / 1'000) << step_ns;
    const bool is_noticed = std::abs(step_ns) >= kSecondNs;
    EXPECT_NEAR(static_cast<double>(clock.StepNs()), is_noticed ? static_cast<double>(step_ns) : 0,
                1e7);
    EXPECT_EQ(clock.steps(), is_noticed ? 1u : 0u);
    uint64_t last_ns = clock.RealtimeNs();
    for (int64_t s = 0; s < 31'000; ++s) {
      system.AdvanceNs(kSecondNs);
      const uint64_t now_ns = clock.RealtimeNs();
      ASSERT_NEAR(static_cast<double>(now_ns - last_ns), 1e9, 1.01e6);
      last_ns = now_ns;
    }
    EXPECT_EQ(clock.RealtimeNs(), system.RealtimeNs());
    EXPECT_EQ(clock.StepNs(), 0);
    EXPECT_EQ(clock.steps(), is_noticed ? 1u : 0u);
  }
}

TEST(SteadyClock, IgnoresClockSteps) {
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
    system.StepRealtimeNs(-step_ns);  // set right again
    EXPECT_EQ(clock.RealtimeNs(), system.RealtimeNs());
    EXPECT_EQ(clock.StepNs(), 0);
    EXPECT_EQ(clock.steps(), 2u);
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
    EXPECT_NEAR(static_cast<double>(clock.RealtimeNs()), static_cast<double>(system.RealtimeNs()),
                2);
    EXPECT_EQ(clock.steps(), 0u) << reading;
  }
}

}  // namespace
}  // namespace neurontrace
