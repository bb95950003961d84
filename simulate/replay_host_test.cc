// SPDX-License-Identifier: Apache-2.0
// Goal: the evidence about simulated clocks is true, and shows what the plan did to them.
#include "simulate/replay_host.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "aggregator/align/core/clock_reading.h"
#include "aggregator/align/host_fit.h"

namespace neurontrace {
namespace {

constexpr uint64_t kStartNs = 1'750'000'000'000'000'000;
constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr ReplayReference kReference{
    .epoch = 3, .true_ns = kStartNs, .reference_ns = kStartNs + 77};

FleetClock DriftingClock() {
  return {.start_ns = kStartNs, .offset_ns = 250'000, .drift = 40e-6, .step_ns = -40'000'000};
}

void Append(const ClockEvidence& from, ClockEvidence& to) {
  to.snapshots.insert(to.snapshots.end(), from.snapshots.begin(), from.snapshots.end());
  to.exchanges.insert(to.exchanges.end(), from.exchanges.begin(), from.exchanges.end());
  to.events.insert(to.events.end(), from.events.begin(), from.events.end());
}

// A run of 20 s whose clock is set after 8.2 s, in batches of 0.9 s.
ClockEvidence EvidenceOfRun(ReplayHost& host, FleetClock clock) {
  ClockEvidence evidence;
  for (uint64_t at_ns = kStartNs; at_ns < kStartNs + 20 * kSecondNs; at_ns += kSecondNs * 9 / 10) {
    const uint64_t step_ns = kStartNs + 8'100'000'000;  // as the model has it: between two batches
    if (at_ns > step_ns) clock.step_true_ns = step_ns;
    host.Reach(at_ns, clock);
    Append(host.TakeEvidence(false), evidence);
  }
  Append(host.TakeEvidence(true), evidence);
  return evidence;
}

TEST(ReplayHostTest, EvidenceGivesAModelThatHoldsTheTruth) {
  ReplayHost host(1, 0, kReference);
  const FleetClock clock = DriftingClock();
  const ClockEvidence evidence = EvidenceOfRun(host, clock);
  const ClockModel model = FitHostClock(evidence, {});
  ASSERT_EQ(model.segments.size(), 1u);
  EXPECT_EQ(model.evidence_rejected, 0u);
  for (const ClockSnapshot& snapshot : evidence.snapshots) {
    const uint64_t raw_ns = snapshot.raw_begin_ns + 40;
    const double elapsed_ns = static_cast<double>(raw_ns - evidence.snapshots[0].raw_begin_ns - 40);
    const uint64_t truth_ns =
        kReference.reference_ns + static_cast<uint64_t>(std::llround(elapsed_ns / (1 + 40e-6)));
    const ClockEstimate estimate = EvaluateClock(model, raw_ns).estimate;
    const auto error_ns = std::abs(static_cast<int64_t>(estimate.y_ns - truth_ns));
    EXPECT_LE(static_cast<uint64_t>(error_ns), estimate.bound_ns + 1) << raw_ns;
    EXPECT_LE(estimate.bound_ns, 200'000u) << raw_ns;
  }
}

TEST(ReplayHostTest, ListsAreInTheOrderOfRaw) {
  ReplayHost host(1, 0, kReference);
  const ClockEvidence evidence = EvidenceOfRun(host, DriftingClock());
  EXPECT_GE(evidence.exchanges.size(), 38u);
  EXPECT_TRUE(
      std::is_sorted(evidence.snapshots.begin(), evidence.snapshots.end(),
                     [](const auto& a, const auto& b) { return a.raw_begin_ns < b.raw_begin_ns; }));
  EXPECT_TRUE(
      std::is_sorted(evidence.exchanges.begin(), evidence.exchanges.end(),
                     [](const auto& a, const auto& b) { return a.send_raw_ns < b.send_raw_ns; }));
}

TEST(ReplayHostTest, AStepIsReportedOnceAndBracketed) {
  ReplayHost host(1, 0, kReference);
  const ClockEvidence evidence = EvidenceOfRun(host, DriftingClock());
  ASSERT_EQ(evidence.events.size(), 1u);
  const ClockEvent& step = evidence.events[0];
  EXPECT_EQ(step.kind, ClockEventKind::kRealtimeStep);
  EXPECT_EQ(step.amount_ns, -40'000'000);
  for (const ClockSnapshot& snapshot : evidence.snapshots) {
    const bool is_after = snapshot.raw_begin_ns > step.raw_begin_ns;
    const int64_t difference_ns =
        RealtimeMinusRaw(snapshot) - RealtimeMinusRaw(evidence.snapshots[0]);
    EXPECT_NEAR(static_cast<double>(difference_ns), is_after ? -40e6 : 0, 2) << is_after;
  }
}

TEST(ReplayHostTest, HasNoEvidenceBeforeTheRun) {
  ReplayHost host(1, 0, kReference);
  EXPECT_TRUE(host.TakeEvidence(false).snapshots.empty());
  host.Reach(kStartNs, DriftingClock());
  EXPECT_TRUE(host.TakeEvidence(false).snapshots.empty());
  EXPECT_EQ(host.RealtimeNs(), kStartNs + 250'000);
}

TEST(ReplayHostTest, TheLastEvidenceIsBeyondTheLastEvent) {
  ReplayHost host(1, 0, kReference);
  host.Reach(kStartNs + 3 * kSecondNs, DriftingClock());
  const uint64_t last_ns = host.RealtimeNs();
  const ClockEvidence evidence = host.TakeEvidence(true);
  ASSERT_FALSE(evidence.snapshots.empty());
  EXPECT_GE(evidence.snapshots.back().realtime_ns, last_ns);
}

}  // namespace
}  // namespace neurontrace
