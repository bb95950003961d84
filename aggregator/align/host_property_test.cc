// SPDX-License-Identifier: Apache-2.0
// Goal: what must be true of a host's model whatever the network does. Method: random hosts whose
// truth is known, by seeds that a failure prints.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "aggregator/align/core/clock_lines.h"
#include "aggregator/align/core/clock_reading.h"
#include "aggregator/align/core/wander_track.h"
#include "aggregator/align/host/host_world_test_support.h"
#include "aggregator/align/host_fit.h"

namespace neurontrace {
namespace {

constexpr double kPropertySeconds = 30;

// What a network can do to an exchange: let it take longer.
void Delay(ClockExchange& exchange, uint64_t forward_ns, uint64_t backward_ns) {
  exchange.reference_receive_ns += forward_ns;
  exchange.reference_send_ns += forward_ns;
  exchange.receive_raw_ns += forward_ns + backward_ns;
}

TEST(HostPropertyTest, DelayLossAndReorderingNeverCauseAMiss) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    HostWorld world(seed);
    std::uniform_real_distribution<double> unit(0, 1);
    ClockEvidence evidence = world.Evidence(kPropertySeconds);
    // Some are delayed a little, some a lot, some in stretches, each way by itself. The delays are
    // of the reference's seconds and of raw's, which are not the same: so the truth tells the
    // stamps.
    const double begin = unit(world.random) * kPropertySeconds;
    for (ClockExchange& exchange : evidence.exchanges) {
      const double s = static_cast<double>(exchange.send_raw_ns - HostWorld::kRawBegin) * 1e-9;
      const bool congested = s > begin && s < begin + 8;
      const double much = congested ? 1e6 : 2e4;
      if (unit(world.random) < (congested ? 0.95 : 0.2)) {
        Delay(exchange, static_cast<uint64_t>(much * unit(world.random)), 0);
      }
      if (unit(world.random) < 0.1) {
        Delay(exchange, 0, static_cast<uint64_t>(3e5 * unit(world.random)));
      }
    }
    std::erase_if(evidence.exchanges,
                  [&](const ClockExchange&) { return unit(world.random) < 0.3; });
    std::shuffle(evidence.exchanges.begin(), evidence.exchanges.end(), world.random);
    ExpectHolds(world, kPropertySeconds, FitHostClock(evidence, {}));
  }
}

TEST(HostPropertyTest, AnyAsymmetryIsWithinTheBound) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    HostWorld world(seed);
    world.forward_ns = std::uniform_real_distribution<double>(0, 60'000)(world.random);
    world.backward_ns = 60'000 - world.forward_ns;
    const ClockModel model = FitHostClock(world.Evidence(kPropertySeconds), {});
    ExpectHolds(world, kPropertySeconds, model);
    // Half of the asymmetry is what nobody can know; but for that it is as good as ever.
    const double unseen = (world.forward_ns - world.backward_ns) / 2;
    const uint64_t raw = world.RawAt(kPropertySeconds / 2);
    EXPECT_NEAR(world.ErrorOf(raw, EvaluateClock(model, raw).estimate.y_ns), unseen, 2'000);
  }
}

// Calls on a busy machine: 35 us each way at the least, mostly much more, and never twice the same.
TEST(HostPropertyTest, CallsOfABusyMachineShowNoStepsThatWereNot) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    HostWorld world(seed);
    ClockEvidence evidence = world.Evidence(6);
    std::exponential_distribution<double> delay(1 / 60e3);
    for (ClockExchange& exchange : evidence.exchanges) {
      exchange.path = ProbePath::kGrpc;
      Delay(exchange, static_cast<uint64_t>(delay(world.random)),
            static_cast<uint64_t>(delay(world.random)));
    }
    const ClockModel model = FitHostClock(evidence, {});
    EXPECT_TRUE(model.findings.empty()) << model.findings.front().words;
    ASSERT_EQ(model.segments.size(), 1u);
    ExpectHolds(world, kPropertySeconds, model);
  }
}

TEST(HostPropertyTest, StepsOfTheCounterAreWithinTheBound) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    HostWorld world(seed);
    std::uniform_real_distribution<double> unit(0, 1);
    const double by_ns = std::pow(10, 4.4 + 4 * unit(world.random));  // 25 us to 250 ms
    const double at_s = 5 + 20 * unit(world.random);
    // Raw that jumps ahead: the reference is less far ahead of it.
    world.steps = {{at_s, unit(world.random) < 0.5 ? by_ns : -std::min(by_ns, 4e7)}};
    const ClockModel model = FitHostClock(world.Evidence(kPropertySeconds), {});
    ASSERT_EQ(model.segments.size(), 2u);
    EXPECT_GE(world.RawAt(at_s), model.segments[0].knots.back().x_ns);
    EXPECT_LE(world.RawAt(at_s), model.segments[1].knots.front().x_ns);
    EXPECT_NEAR(static_cast<double>(model.findings.front().amount_ns), world.steps[0].by_ns, 4'000);
    ExpectHolds(world, kPropertySeconds, model);
  }
}

TEST(HostPropertyTest, TheOrderOfArrivalChangesNothing) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    HostWorld world(seed);
    ClockEvidence evidence = world.Evidence(kPropertySeconds);
    const ClockModel model = FitHostClock(evidence, {});
    std::shuffle(evidence.exchanges.begin(), evidence.exchanges.end(), world.random);
    EXPECT_EQ(FitHostClock(evidence, {}), model) << seed;
  }
}

TEST(HostPropertyTest, ShiftedClocksGiveTheShiftedModel) {
  constexpr uint64_t kRawShift = 123'456'789'012'345;
  constexpr uint64_t kReferenceShift = 98'765'432'109'876'543;
  HostWorld world(5);
  ClockEvidence evidence = world.Evidence(kPropertySeconds);
  ClockModel model = FitHostClock(evidence, {});
  for (ClockExchange& e : evidence.exchanges) {
    e.send_raw_ns += kRawShift;
    e.receive_raw_ns += kRawShift;
    e.reference_receive_ns += kReferenceShift;
    e.reference_send_ns += kReferenceShift;
  }
  for (ClockKnot& knot : model.segments.front().knots) {
    knot.x_ns += kRawShift;
    knot.y_ns += kReferenceShift;
  }
  EXPECT_EQ(FitHostClock(evidence, {}), model);
}

// Played backwards the same constraints hold, and leave the same open. Only where knots lie
// differs.
TEST(HostPropertyTest, TimeMayRunBackwards) {
  HostWorld world(6);
  const ClockEvidence evidence = world.Evidence(kPropertySeconds);
  const uint64_t raw_turn = 2 * world.RawAt(kPropertySeconds);
  const uint64_t reference_turn = 2 * HostWorld::kReferenceBegin;
  ClockEvidence reversed;
  for (const ClockExchange& e : evidence.exchanges) {
    reversed.exchanges.push_back({raw_turn - e.receive_raw_ns, reference_turn - e.reference_send_ns,
                                  reference_turn - e.reference_receive_ns, raw_turn - e.send_raw_ns,
                                  e.reference_epoch, e.path});
  }
  const ClockModel forward = FitHostClock(evidence, {});
  const ClockModel backward = FitHostClock(reversed, {});
  for (double s = 1; s < kPropertySeconds - 1; s += 0.5) {
    const ClockEstimate a = EvaluateClock(forward, world.RawAt(s)).estimate;
    const ClockEstimate b = EvaluateClock(backward, raw_turn - world.RawAt(s)).estimate;
    EXPECT_NEAR(static_cast<double>(static_cast<int64_t>(a.y_ns - (reference_turn - b.y_ns))), 0,
                400);
    EXPECT_NEAR(static_cast<double>(a.bound_ns), static_cast<double>(b.bound_ns), 1'000);
  }
}

TEST(HostPropertyTest, MoreEvidenceNeverWidens) {
  const WanderPolygon anything({-1e12, 1e12}, {-1e5, 1e5});
  std::vector<double> grid;
  for (double s = 0; s <= kPropertySeconds; s += 1) grid.push_back(s);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    HostWorld world(seed);
    std::vector<TrackSide> few;
    std::vector<TrackSide> many;
    const auto add = [&](uint64_t raw, uint64_t y, bool is_most, bool is_in_both) {
      const uint64_t shift = HostWorld::kReferenceBegin - HostWorld::kRawBegin;
      const TrackSide side{static_cast<double>(raw - HostWorld::kRawBegin) * 1e-9,
                           static_cast<double>(static_cast<int64_t>(y - raw - shift)), 0, is_most};
      many.push_back(side);
      if (is_in_both) few.push_back(side);
    };
    for (const ClockExchange& e : world.Evidence(kPropertySeconds).exchanges) {
      const bool is_in_both = few.empty() || world.random() % 4 == 0;
      add(e.send_raw_ns, e.reference_receive_ns, true, is_in_both);
      add(e.receive_raw_ns, e.reference_send_ns, false, is_in_both);
    }
    const auto by_time = [](const TrackSide& a, const TrackSide& b) {
      return a.seconds < b.seconds;
    };
    std::stable_sort(few.begin(), few.end(), by_time);
    std::stable_sort(many.begin(), many.end(), by_time);
    TrackVerdicts verdicts(1);
    const TrackResult wide = SmoothTrack(few, grid, anything, {}, 0, verdicts);
    const TrackResult narrow = SmoothTrack(many, grid, anything, {}, 0, verdicts);
    EXPECT_TRUE(verdicts.found().empty());
    for (size_t i = 0; i < grid.size(); ++i) {
      // But for corners that were left out.
      const double slack = 0.01 * wide.points[i].offset.width();
      EXPECT_GE(narrow.points[i].offset.min, wide.points[i].offset.min - slack) << grid[i];
      EXPECT_LE(narrow.points[i].offset.max, wide.points[i].offset.max + slack) << grid[i];
    }
  }
}

TEST(HostPropertyTest, FinalStampsKeepEveryExchange) {
  HostWorld world(9);
  const ClockEvidence evidence = world.Evidence(kPropertySeconds);
  const ClockMap map = MapOf(FitHostClock(evidence, {}));
  for (const ClockExchange& e : evidence.exchanges) {
    EXPECT_LE(map.ToReference(e.send_raw_ns), e.reference_receive_ns);
    EXPECT_GE(map.ToReference(e.receive_raw_ns), e.reference_send_ns);
  }
}

}  // namespace
}  // namespace neurontrace
