// SPDX-License-Identifier: Apache-2.0
#include "tests/insight_sim/baselines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<uint32_t> Named(const FleetPlan& plan, Baseline baseline) {
  FleetModel model(plan);
  BaselineSink sink(plan);
  while (model.RunStep(sink)) {
  }
  model.Finish(sink);
  return sink.Named(baseline);
}

TEST(BaselinesTest, NameNobodyInAnEvenFleet) {
  FleetPlan plan;
  plan.noise_low = plan.noise_high = 0.004;
  plan.hiccup_chance = 0;
  EXPECT_THAT(Named(plan, Baseline::kBestShare), IsEmpty());
  EXPECT_THAT(Named(plan, Baseline::kOwnHistory), IsEmpty());
  EXPECT_THAT(Named(plan, Baseline::kStagePeers), IsEmpty());
}

TEST(BaselinesTest, NameASlowCore) {
  FleetPlan plan;
  plan.faults = {{VerdictKind::kSlowCore, 1.0, 5, 0.5, 1}};
  EXPECT_THAT(Named(plan, Baseline::kOwnHistory), ElementsAre(5));
  plan.faults[0].begin = 0;
  EXPECT_THAT(Named(plan, Baseline::kStagePeers), ElementsAre(5));
  EXPECT_THAT(Named(plan, Baseline::kBestShare), ElementsAre(5));
}

TEST(BaselinesTest, TheBestShareBlamesAHeavyStage) {
  FleetPlan plan;
  plan.stage_weights = {1, 1.5};
  EXPECT_EQ(Named(plan, Baseline::kBestShare).size(), plan.ranks() / 2);
}

}  // namespace
}  // namespace neurontrace
