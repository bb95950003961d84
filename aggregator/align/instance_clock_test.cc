// SPDX-License-Identifier: Apache-2.0
// Goal: what people learn about a machine's clocks. Method: probes that took as long there as back,
// and a REALTIME that somebody sets.
#include "aggregator/align/instance_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/align/core/clock_reading.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kReference = 1'700'000'000 * kNsPerSecond;  // at raw 0
constexpr uint64_t kStepRaw = 20 * kNsPerSecond + kNsPerSecond / 2;

uint64_t RealtimeAt(uint64_t raw_ns, int64_t step_ns) {
  return kReference + raw_ns + (raw_ns < kStepRaw ? 0 : static_cast<uint64_t>(step_ns));
}

ClockEvidence Evidence(int64_t step_ns) {
  ClockEvidence evidence;
  for (uint64_t raw = 10 * kNsPerSecond; raw < 30 * kNsPerSecond; raw += kNsPerSecond / 4) {
    evidence.exchanges.push_back({.send_raw_ns = raw,
                                  .reference_receive_ns = kReference + raw + 30'000,
                                  .reference_send_ns = kReference + raw + 31'000,
                                  .receive_raw_ns = raw + 61'000,
                                  .reference_epoch = 1,
                                  .path = ProbePath::kUdp});
  }
  const auto add_snapshot = [&](uint64_t raw) {
    evidence.snapshots.push_back({.raw_begin_ns = raw,
                                  .raw_end_ns = raw + 100,
                                  .realtime_ns = RealtimeAt(raw, step_ns) + 50,
                                  .monotonic_ns = raw + 50,
                                  .boottime_ns = raw + 50,
                                  .tick_us = 10'000});
  };
  for (uint64_t s = 10; s < 30; ++s) {
    add_snapshot(s * kNsPerSecond);
    if (s != 20 || step_ns == 0) continue;
    add_snapshot(kStepRaw - 10'000'000);
    add_snapshot(kStepRaw + 10'000);
    evidence.events.push_back({.kind = ClockEventKind::kRealtimeStep,
                               .raw_begin_ns = kStepRaw - 10'000'000,
                               .raw_end_ns = kStepRaw + 10'100,
                               .amount_ns = step_ns});
  }
  return evidence;
}

InstanceClock Fit(int64_t step_ns) {
  return FitInstanceClock(
      "i-a", "boot", Evidence(step_ns),
      ReferenceWindow{kReference + 15 * kNsPerSecond, kReference + 25 * kNsPerSecond});
}

TEST(InstanceClockTest, ReportsNothingAboutContinuousClock) {
  const InstanceClock clock = Fit(0);
  EXPECT_THAT(clock.model.findings, IsEmpty());
  EXPECT_LT(clock.bound_ns, 35'000u);
}

TEST(InstanceClockTest, ReportsForwardStepOfRealtime) {
  const InstanceClock clock = Fit(300'000'000);
  EXPECT_THAT(clock.model.findings,
              ElementsAre(ClockFinding{ClockFindingKind::kBreak, kStepRaw - 10'000'000,
                                       kStepRaw + 10'100, 300'000'000, "CLOCK_REALTIME was set"}));
  EXPECT_EQ(clock.model.segments.size(), 1u);
  // When it was is known to within two readings; no stamp lies in what was skipped.
  EXPECT_LT(clock.bound_ns, 10'100'000u);
}

TEST(InstanceClockTest, RepeatedStampsHaveWiderBounds) {
  const InstanceClock clock = Fit(-300'000'000);
  EXPECT_EQ(clock.model.findings.size(), 1u);
  EXPECT_GT(clock.bound_ns, 150'000'000u);
  EXPECT_LT(clock.bound_ns, 160'000'000u);
}

TEST(InstanceClockTest, ReturnsBoundsOfRequestedWindow) {
  InstanceClock clock = Fit(-300'000'000);
  SetBoundsIn({kReference + 15 * kNsPerSecond, kReference + 20 * kNsPerSecond}, clock);
  EXPECT_LT(clock.bound_ns, 35'000u);
  EXPECT_LE(clock.likely_bound_ns, clock.bound_ns);
}

// REALTIME is ahead by half of all times: more than a number with a sign can say, until the last
// second, as the reference gains 50 ppm.
TEST(InstanceClockTest, ReturnsDriftForAnyRealtime) {
  ClockEvidence evidence = Evidence(0);
  for (ClockExchange& exchange : evidence.exchanges) {
    exchange.reference_receive_ns += exchange.send_raw_ns / 20'000;
    exchange.reference_send_ns += exchange.send_raw_ns / 20'000;
  }
  for (ClockSnapshot& snapshot : evidence.snapshots) {
    snapshot.realtime_ns += (uint64_t{1} << 63) + 1'425'000;
  }
  const InstanceClock clock = FitInstanceClock("i-a", "boot", evidence, std::nullopt);
  EXPECT_NEAR(static_cast<double>(clock.drift_ppb), 50'000, 1'000);
}

}  // namespace
}  // namespace neurontrace
