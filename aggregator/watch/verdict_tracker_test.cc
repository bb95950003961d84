// SPDX-License-Identifier: Apache-2.0
// Goal: a verdict of a single judgement counts for nothing, one that lasts counts once, and one
// that could not be judged for a while is neither over nor begun again.
#include "aggregator/watch/verdict_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/time_units.h"
#include "lib/trace/watch_limits.h"
#include "lib/triggers/verdict_patterns.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class VerdictTrackerTest : public testing::Test {
 protected:
  static Verdict Slow(std::vector<uint32_t> suspects, VerdictKind kind = VerdictKind::kSlowHost) {
    Verdict verdict;
    verdict.kind = kind;
    verdict.suspects = std::move(suspects);
    return verdict;
  }
  VerdictTracker::Changes Judge(std::vector<Verdict> verdicts, std::vector<Refusal> refusals = {}) {
    InsightReport report;
    report.verdicts = std::move(verdicts);
    report.refusals = std::move(refusals);
    report.cores_judged = 4;
    const std::vector<std::string> texts(report.verdicts.size(), "slow");
    now_ns_ += pause_ns_;
    return tracker_.Update(report, cores_, texts, now_ns_);
  }

  const std::vector<InsightCore> cores_ = {{.job = "j", .instance_id = "i-1", .nc_idx = 0},
                                           {.job = "j", .instance_id = "i-1", .nc_idx = 1},
                                           {.job = "j", .instance_id = "i-2", .nc_idx = 0},
                                           {.job = "j", .instance_id = "i-2", .nc_idx = 1}};
  VerdictTracker tracker_;
  uint64_t now_ns_ = 7 * kNsPerSecond;
  uint64_t pause_ns_ = kNsPerSecond;  // between judgements
};

TEST_F(VerdictTrackerTest, BeginsAfterASecond) {
  EXPECT_THAT(Judge({Slow({0, 1})}).began, IsEmpty());
  EXPECT_THAT(tracker_.current(), IsEmpty());
  EXPECT_THAT(Judge({Slow({2}), Slow({0, 1})}).began, ElementsAre(1));
  EXPECT_THAT(tracker_.current(), ElementsAre(1));
  EXPECT_THAT(Judge({Slow({0, 1})}).began, IsEmpty());
}

TEST_F(VerdictTrackerTest, JudgementsInQuickSuccessionBeginNothingSooner) {
  pause_ns_ = kNsPerSecond / 4;
  for (int i = 0; i < 4; ++i) EXPECT_THAT(Judge({Slow({0})}).began, IsEmpty());
  EXPECT_THAT(Judge({Slow({0})}).began, ElementsAre(0));
  for (int i = 0; i < 11; ++i) EXPECT_THAT(Judge({}).ended, IsEmpty());
  EXPECT_THAT(Judge({}).ended, ElementsAre("slow"));
}

TEST_F(VerdictTrackerTest, AHangBeginsSooner) {
  pause_ns_ = kNsPerSecond / 4;
  const Verdict hang = Slow({0}, VerdictKind::kHangNotEntered);
  EXPECT_THAT(Judge({hang}).began, IsEmpty());
  EXPECT_THAT(Judge({hang}).began, IsEmpty());
  EXPECT_THAT(Judge({hang}).began, ElementsAre(0));
}

TEST_F(VerdictTrackerTest, StartsOverAfterAJudgementWithout) {
  Judge({Slow({0})});
  Judge({});
  EXPECT_THAT(Judge({Slow({0})}).began, IsEmpty());
  EXPECT_THAT(Judge({Slow({0})}).began, ElementsAre(0));
}

TEST_F(VerdictTrackerTest, IsOneAsLongAsItNamesOnePlace) {
  Judge({Slow({0})});
  EXPECT_THAT(Judge({Slow({0, 1})}).began, ElementsAre(0));
  EXPECT_THAT(Judge({Slow({2})}).began, IsEmpty());
}

TEST_F(VerdictTrackerTest, EndsAfterThreeSecondsWithout) {
  Judge({Slow({0})});
  Judge({Slow({0})});
  for (int i = 1; i < 3; ++i) EXPECT_THAT(Judge({}).ended, IsEmpty());
  EXPECT_THAT(Judge({}).ended, ElementsAre("slow"));
  EXPECT_THAT(Judge({}).ended, IsEmpty());
}

TEST_F(VerdictTrackerTest, LastsWhileItsSuspectsAreRefused) {
  Judge({Slow({0, 1})});
  Judge({Slow({0, 1})});
  for (int i = 0; i < 10; ++i) EXPECT_THAT(Judge({}, {{.cores = {0, 1, 2}}}).ended, IsEmpty());
  EXPECT_THAT(tracker_.current(), IsEmpty());
  EXPECT_THAT(Judge({Slow({0, 1})}).began, IsEmpty()) << "it had begun before";
  EXPECT_THAT(tracker_.current(), ElementsAre(0));
  // One of them is judged.
  Judge({}, {{.cores = {0}}});
  Judge({}, {{.cores = {0}}});
  EXPECT_THAT(Judge({}, {{.cores = {0}}}).ended, ElementsAre("slow"));
}

TEST_F(VerdictTrackerTest, FollowsNoMoreThanItsLimit) {
  std::vector<InsightCore> cores;
  InsightReport report;
  for (uint32_t i = 0; i < limits::kWatchVerdictsMax + 2; ++i) {
    cores.push_back({.job = "j", .instance_id = "i-" + std::to_string(i)});
    report.verdicts.push_back(Slow({i}));
  }
  const std::vector<std::string> texts(report.verdicts.size());
  tracker_.Update(report, cores, texts, now_ns_);
  EXPECT_EQ(tracker_.not_followed(), 2u);
}

TEST(VerdictNames, AreThoseOfTheRule) {
  for (size_t i = 0; i < kVerdictNames.size(); ++i) {
    EXPECT_EQ(kVerdictNames[i], VerdictKindName(static_cast<VerdictKind>(i + 1)));
  }
  EXPECT_EQ(static_cast<size_t>(VerdictKind::kDeviceError), kVerdictNames.size());
}

}  // namespace
}  // namespace neurontrace
