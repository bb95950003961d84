// SPDX-License-Identifier: Apache-2.0
// Goal: a host's model holds the truth within its bounds, and is near it. Method: exchanges made
// from a clock that is known.
#include "aggregator/align/host_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "aggregator/align/core/clock_reading.h"

namespace neurontrace {
namespace {

constexpr uint64_t kRawBegin = 86'400'000'000'000;
constexpr uint64_t kReferenceBegin = 1'750'000'000'000'000'000;

// 20 ppm fast, and 0.2 ppm more and less so every 300 s.
uint64_t TruthAt(uint64_t raw_ns) {
  const double s = static_cast<double>(raw_ns - kRawBegin) * 1e-9;
  const double offset = 20'000 * s + 200 * 300 / 6.2832 * std::sin(s * 6.2832 / 300);
  return kReferenceBegin + (raw_ns - kRawBegin) + static_cast<uint64_t>(std::llround(offset));
}

// Eight exchanges a second, 30 us each way and 6 us of jitter.
ClockEvidence EvidenceOf(double seconds, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> jitter(1.0 / 6'000);
  const auto delay = [&] { return 30'000 + static_cast<uint64_t>(jitter(random)); };
  ClockEvidence evidence;
  for (double s = 0; s < seconds; s += 0.125) {
    const uint64_t send = kRawBegin + static_cast<uint64_t>(s * 1e9);
    const uint64_t arrival = send + delay();
    const uint64_t answer = arrival + 15'000;
    evidence.exchanges.push_back(
        {send, TruthAt(arrival), TruthAt(answer), answer + delay(), 1, ProbePath::kUdp});
  }
  return evidence;
}

TEST(HostFitTest, IsNearTheTruthAndNeverBeyondItsBound) {
  const ClockModel model = FitHostClock(EvidenceOf(60, 7), {});
  ASSERT_EQ(model.segments.size(), 1u);
  for (uint64_t ms = 0; ms < 60'000; ms += 7) {
    const uint64_t raw = kRawBegin + ms * 1'000'000;
    const ClockEstimate estimate = EvaluateClock(model, raw).estimate;
    const double error =
        std::abs(static_cast<double>(static_cast<int64_t>(estimate.y_ns - TruthAt(raw))));
    EXPECT_LE(error, 2'000) << ms;
    EXPECT_LE(error, static_cast<double>(estimate.likely_bound_ns)) << ms;
    EXPECT_LE(estimate.likely_bound_ns, 10'000u) << ms;
    EXPECT_LE(estimate.bound_ns, 50'000u) << ms;
  }
}

TEST(HostFitTest, NoEvidenceGivesNoModel) {
  const ClockModel model = FitHostClock({}, {});
  EXPECT_TRUE(model.segments.empty());
  EXPECT_EQ(EvaluateClock(model, 77).estimate.y_ns, 77u);
  EXPECT_EQ(EvaluateClock(model, 77).estimate.bound_ns, kNoBound);
}

TEST(HostFitTest, AnEventOfNoTimeBreaksNothing) {
  ClockEvidence evidence = EvidenceOf(20, 3);
  const ClockModel model = FitHostClock(evidence, {});
  for (const uint64_t raw : {uint64_t{1} << 62, uint64_t{1} << 63, UINT64_MAX}) {
    evidence.events.push_back({ClockEventKind::kSuspend, kRawBegin + 60'000'000'000, raw, 0});
    evidence.events.push_back({ClockEventKind::kPause, raw, raw, 0});
  }
  EXPECT_EQ(FitHostClock(evidence, {}), model);
}

TEST(HostFitTest, IsTheSameForTheSameEvidence) {
  EXPECT_EQ(FitHostClock(EvidenceOf(20, 3), {}), FitHostClock(EvidenceOf(20, 3), {}));
}

}  // namespace
}  // namespace neurontrace
