// SPDX-License-Identifier: Apache-2.0
// Random worlds with a known truth: whatever the seed, the pass leaves no effect before its cause,
// and no bound that does not cover the truth.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "aggregator/align/causal_pair_bound.h"
#include "aggregator/align/causal_pass.h"
#include "aggregator/align/causal_violation.h"
#include "aggregator/align/causal_world_test_support.h"

namespace neurontrace {
namespace {

constexpr uint64_t kSeeds = 30;

CausalParameters Applying() {
  CausalParameters parameters;
  parameters.modes.fill(CausalMode::kApply);
  return parameters;
}

// Errors of stamps against each other, in ns.
struct Errors {
  std::vector<int64_t> pairs;
  void Add(const Errors& other) {
    pairs.insert(pairs.end(), other.pairs.begin(), other.pairs.end());
  }
  double Microseconds(double quantile) {
    std::sort(pairs.begin(), pairs.end());
    const double at = quantile * static_cast<double>(pairs.size() - 1);
    return pairs.empty() ? 0 : static_cast<double>(pairs[static_cast<size_t>(at)]) / 1000;
  }
};

// How far the models are apart at moments that are the same in truth.
Errors PairErrors(const CausalWorld& world, const std::vector<ClockModel>& models) {
  Errors errors;
  for (const CausalWorld::Barrier& barrier : world.barriers()) {
    std::vector<int64_t> off;
    for (uint32_t c = 0; c < models.size(); ++c) {
      const uint64_t read =
          CausalWorld::Read(models[c].segments[0], world.Raw(c, barrier.enters[0]));
      off.push_back(static_cast<int64_t>(read) - barrier.enters[0]);
    }
    for (size_t i = 1; i < off.size(); ++i) errors.pairs.push_back(std::abs(off[i] - off[0]));
  }
  return errors;
}

// The truth about each pair of clocks at some moments lies within what the pass says of it.
void ExpectPairBoundsCover(const CausalWorld& world, const std::vector<ClockModel>& models,
                           const CausalResult& result) {
  const CausalInstances instances = world.Instances();
  for (size_t b = 3; b < world.barriers().size(); b += 97) {
    const int64_t moment = world.barriers()[b].enters[0];
    const auto clock = static_cast<uint32_t>(b % models.size());
    const auto bounds =
        CausalPairBounds(world.Clocks(), instances, Applying(), result,
                         {.clock = clock, .reference_ns = world.Stamp(clock, moment)});
    ASSERT_TRUE(bounds.ok()) << bounds.status();
    const auto read = [&](uint32_t c) {
      return static_cast<int64_t>(CausalWorld::Read(models[c].segments[0], world.Raw(c, moment)));
    };
    for (uint32_t c = 0; c < models.size(); ++c) {
      const int64_t raise = read(clock) - read(c);  // what would make them equal, as they are
      ASSERT_GE(raise, (*bounds)[c].least_ns - 3) << "clocks " << clock << ", " << c;
      ASSERT_LE(raise, (*bounds)[c].most_ns + 3) << "clocks " << clock << ", " << c;
    }
  }
}

struct WorldParameter {
  double asymmetry_us;
  double skew_us;  // of collectives, which no estimate can see
};

class CausalWorldTest : public testing::TestWithParam<WorldParameter> {};

TEST_P(CausalWorldTest, NoViolationRemainsAndBoundsCoverTheTruth) {
  Errors before;
  Errors after;
  uint64_t rejected = 0;
  uint64_t instances_seen = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << ", asymmetry " << GetParam().asymmetry_us << " us");
    CausalWorld world({.seed = seed,
                       .clocks = static_cast<uint32_t>(2 + seed % 14),
                       .barriers_per_s = 10 + seed % 3 * 40,
                       .asymmetry_max_us = GetParam().asymmetry_us,
                       .latency_skew_max_us = GetParam().skew_us});
    const CausalInstances instances = world.Instances();
    const auto result = RunCausalPass(world.Clocks(), instances, Applying());
    ASSERT_TRUE(result.ok()) << result.status();
    const CausalClassReport& report = result->report[CausalClass::kBarrier];
    EXPECT_EQ(report.violated_after, 0u);
    rejected += report.rejected;
    instances_seen += report.instances;

    std::vector<ClockModel> corrected;
    for (size_t c = 0; c < world.models().size(); ++c) {
      corrected.push_back(ApplyCorrections(world.models()[c], result->corrections, c));
    }
    for (size_t b = 0; b < world.barriers().size(); ++b) {
      const CausalWorld::Barrier& barrier = world.barriers()[b];
      uint64_t last = 0;
      uint64_t first = UINT64_MAX;
      for (uint32_t c = 0; c < corrected.size(); ++c) {
        const ClockSegment& segment = corrected[c].segments[0];
        const uint64_t enter = CausalWorld::Read(segment, world.Raw(c, barrier.enters[c]));
        const uint64_t exit = CausalWorld::Read(segment, world.Raw(c, barrier.exits[c]));
        last = std::max(last, enter);
        first = std::min(first, exit);
        const int64_t off = barrier.enters[c] - static_cast<int64_t>(enter);
        ASSERT_LE(std::abs(off), static_cast<int64_t>(BoundAt(segment.knots, enter)))
            << "clock " << c << ", barrier " << b;
        const auto shifted = static_cast<int64_t>(
            result->corrections.Corrected(c, world.Stamp(c, barrier.enters[c])));
        ASSERT_LE(std::abs(shifted - static_cast<int64_t>(enter)), 3);
      }
      if (result->rejected[b]) continue;
      ASSERT_LE(last, first) << "barrier " << b;
    }
    ExpectPairBoundsCover(world, corrected, *result);
    before.Add(PairErrors(world, world.models()));
    after.Add(PairErrors(world, corrected));
  }
  std::printf(
      "%lu worlds, asymmetry up to %2.0f us, skew up to %1.0f us: pair error p50 %.2f -> %.2f us, "
      "p99 %.2f -> "
      "%.2f us, max %.2f -> %.2f us\n",
      kSeeds, GetParam().asymmetry_us, GetParam().skew_us, before.Microseconds(.5),
      after.Microseconds(.5), before.Microseconds(.99), after.Microseconds(.99),
      before.Microseconds(1), after.Microseconds(1));
  EXPECT_LE(rejected * 10'000, instances_seen);
}

INSTANTIATE_TEST_SUITE_P(Worlds, CausalWorldTest,
                         testing::Values(WorldParameter{0, 0}, WorldParameter{20, 0},
                                         WorldParameter{60, 0}, WorldParameter{60, 8}));

TEST(CausalPairBoundsTest, FurtherConstraintsNeverWidenThem) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const CausalWorld world({.seed = seed, .clocks = 5, .seconds = 8, .asymmetry_max_us = 30});
    const CausalInstances all = world.Instances();
    CausalInstances some;
    for (size_t i = 0; i < all.size(); i += 3) {
      ASSERT_TRUE(some.Add(all[i].instance, all.Causes(all[i]), all.Effects(all[i])).ok());
    }
    const auto of_all = RunCausalPass(world.Clocks(), all, Applying());
    const auto of_some = RunCausalPass(world.Clocks(), some, Applying());
    ASSERT_TRUE(of_all.ok() && of_some.ok());
    for (uint64_t second = 1; second < 8; ++second) {
      const CausalMoment moment{.clock = 1,
                                .reference_ns = CausalWorld::kEpochNs + second * 1'000'000'000};
      const auto tight = CausalPairBounds(world.Clocks(), all, Applying(), *of_all, moment);
      const auto wide = CausalPairBounds(world.Clocks(), some, Applying(), *of_some, moment);
      ASSERT_TRUE(tight.ok() && wide.ok());
      for (size_t c = 0; c < tight->size(); ++c) {
        EXPECT_LE((*tight)[c].most_ns - (*tight)[c].least_ns,
                  (*wide)[c].most_ns - (*wide)[c].least_ns);
        // Half of it is little more than the least latency of 12 us, here at 50 barriers a second.
        EXPECT_LE((*tight)[c].most_ns - (*tight)[c].least_ns, 2 * 16'000) << second;
      }
    }
  }
}

}  // namespace
}  // namespace neurontrace
