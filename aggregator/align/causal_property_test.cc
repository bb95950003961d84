// SPDX-License-Identifier: Apache-2.0
// Random worlds with a known truth: whatever the seed, the pass leaves no effect before its cause,
// and no bound that does not cover the truth.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

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
  int64_t Quantile(double q) {
    std::sort(pairs.begin(), pairs.end());
    return pairs.empty() ? 0
                         : pairs[static_cast<size_t>(q * static_cast<double>(pairs.size() - 1))];
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

class CausalWorldTest : public testing::TestWithParam<double> {};

TEST_P(CausalWorldTest, NoViolationRemainsAndBoundsCoverTheTruth) {
  uint64_t rejected = 0;
  uint64_t instances_seen = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", asymmetry " << GetParam() << " us");
    CausalWorld world({.seed = seed,
                       .clocks = static_cast<uint32_t>(2 + seed % 14),
                       .barriers_per_s = 10 + seed % 3 * 40,
                       .asymmetry_max_us = GetParam()});
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
    Errors before = PairErrors(world, world.models());
    Errors after = PairErrors(world, corrected);
    std::printf(
        "seed %2lu clocks %2u: violated %4lu -> %lu, rejected %lu, unlikely %lu, rounds %lu, "
        "pair error p50 %5.2f -> %5.2f, p99 %5.2f -> %5.2f, max %5.2f -> %5.2f us\n",
        seed, world.options().clocks, report.violated_before, report.violated_after,
        report.rejected, result->report.unlikely_clocks, result->report.rounds,
        before.Quantile(.5) / 1e3, after.Quantile(.5) / 1e3, before.Quantile(.99) / 1e3,
        after.Quantile(.99) / 1e3, before.Quantile(1) / 1e3, after.Quantile(1) / 1e3);
  }
  EXPECT_LE(rejected * 10'000, instances_seen);
}

INSTANTIATE_TEST_SUITE_P(Asymmetry, CausalWorldTest, testing::Values(0.0, 20.0, 60.0));

}  // namespace
}  // namespace neurontrace
