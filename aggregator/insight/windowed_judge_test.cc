// SPDX-License-Identifier: Apache-2.0
// Goal: a capture of any length is judged from its begin to its end, each fault is one verdict with
// its own times and costs, a loss refuses only what it touches, and memory does not grow. Method: a
// fleet in lock step by one clock, whose faults and losses are known.
#include "aggregator/insight/windowed_judge.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "aggregator/insight/insight_class.h"
#include "aggregator/insight/lock_step_fleet.h"
#include "aggregator/insight/verdict_text.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kHourNs = 3'600'000'000'000;
constexpr uint64_t kMs = 1'000'000;

class WindowedJudgeTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kCores = 16;
  static constexpr uint32_t kPerProcess = 4;
  static constexpr uint32_t kHalf = WindowedJudge::kWindowExecutions / 2;

  WindowedJudgeTest() : fleet_(kCores, kPerProcess), losses_(kCores), conditions_(kCores) {}

  // Makes executions, and keeps them by the first instance's clock.
  void Run(uint32_t executions) {
    for (const auto& of_core : fleet_.Run(executions)) {
      for (InsightEvent event : of_core) {
        const uint64_t offset_ns = kHourNs * (event.core / kPerProcess / 2);
        event.start_ns -= offset_ns;
        event.end_ns -= offset_ns;
        if (event.kind == InsightClass::kRun && event.core == 0) ends_.push_back(event.end_ns);
        events_.push_back(event);
      }
    }
  }
  // The end of an execution of the first core, which all have in common.
  uint64_t EndOf(uint32_t execution) const { return ends_.at(execution); }
  InsightReport Judge() {
    std::ranges::stable_sort(events_, EndsBefore);
    judge_ = std::make_unique<WindowedJudge>(fleet_.cores, losses_);
    for (const InsightEvent& event : events_) judge_->Take(event);
    return judge_->Finish(conditions_);
  }
  std::string Texts(const InsightReport& report) const {
    std::string text;
    for (const Verdict& verdict : report.verdicts)
      text += VerdictText(verdict, fleet_.cores) + "\n";
    for (const Refusal& refusal : report.refusals)
      text += RefusalText(refusal, fleet_.cores) + "\n";
    return text + ReportText(report, fleet_.cores);
  }
  // Lengths are kept with 24 bits.
  static void ExpectNear(uint64_t ns, uint64_t expected_ns) {
    EXPECT_NEAR(static_cast<double>(ns), static_cast<double>(expected_ns), 1'000);
  }
  // The end is known to half a window.
  void ExpectEndsIn(const Verdict& verdict, uint32_t execution) const {
    EXPECT_LE(verdict.until_ns, EndOf(execution)) << execution;
    EXPECT_GE(verdict.until_ns, EndOf(execution - kHalf)) << execution;
  }
  // The device of a core takes 1.5 times as long in the executions [first, last).
  void SlowBetween(uint32_t slow, uint32_t first, uint32_t last) {
    const auto before = fleet_.plan;
    fleet_.plan = [=](uint32_t core, uint32_t execution, FleetWork& work) {
      if (before) before(core, execution, work);
      if (core == slow && execution >= first && execution < last) work.device *= 1.5;
    };
  }

  LockStepFleet fleet_;
  std::vector<InsightEvent> events_;
  std::vector<uint64_t> ends_;
  std::vector<std::vector<CoreLoss>> losses_;
  std::vector<CoreCondition> conditions_;
  std::unique_ptr<WindowedJudge> judge_;
};

TEST_F(WindowedJudgeTest, AClockThatWasSetCostsNothing) {
  SlowBetween(5, 0, 64);
  Run(64);
  for (InsightEvent& event : events_) {
    if (event.exec_id < 48) continue;
    event.start_ns += kHourNs;
    event.end_ns += kHourNs;
  }
  const InsightReport report = Judge();
  ASSERT_THAT(report.verdicts, SizeIs(1)) << Texts(report);
  const Verdict& verdict = report.verdicts[0];
  EXPECT_THAT(verdict.suspects, ElementsAre(5));
  EXPECT_GT(verdict.total_cost_ns, 0u);
  EXPECT_LE(verdict.total_cost_ns, verdict.cost_ns * 66) << Texts(report);
}

TEST_F(WindowedJudgeTest, FindsAFaultOfTheFirstThirdWithItsTimes) {
  SlowBetween(5, 20, 96);
  Run(300);
  const InsightReport report = Judge();
  ASSERT_THAT(report.verdicts, SizeIs(1)) << Texts(report);
  const Verdict& verdict = report.verdicts[0];
  EXPECT_EQ(verdict.kind, VerdictKind::kSlowCore);
  EXPECT_THAT(verdict.suspects, ElementsAre(5));
  ExpectNear(verdict.since_ns, EndOf(19));
  ExpectEndsIn(verdict, 95);
  EXPECT_GE(verdict.executions, 76 - kHalf);
  EXPECT_LE(verdict.executions, 76u);
  EXPECT_THAT(report.refusals, IsEmpty()) << Texts(report);
  EXPECT_EQ(report.cores_judged, kCores);
  // All but the first one, which has no begin, and the last one, whose calls may still end.
  EXPECT_GE(report.executions, uint64_t{kCores} * 297);
  EXPECT_LE(report.executions, uint64_t{kCores} * 300);
}

// The cost of a step is 20 ms, and it is paid in each step that the verdict has.
TEST_F(WindowedJudgeTest, SumsTheCostOfAllSteps) {
  SlowBetween(5, 20, 96);
  Run(300);
  const InsightReport report = Judge();
  ASSERT_THAT(report.verdicts, SizeIs(1)) << Texts(report);
  EXPECT_NEAR(static_cast<double>(report.verdicts[0].cost_ns), 20e6, 1e6);
  const double steps = report.verdicts[0].executions;
  EXPECT_NEAR(static_cast<double>(report.verdicts[0].total_cost_ns), steps * 20e6, steps * 1.5e6);
  EXPECT_THAT(VerdictText(report.verdicts[0], fleet_.cores), HasSubstr(" in all; "));
}

// Inference alternates between long phases of two models. The first has the larger excess of a step
// even where only the second has new executions.
TEST_F(WindowedJudgeTest, NamesEachModelThatIsSlow) {
  fleet_.plan = [](uint32_t, uint32_t execution, FleetWork& work) {
    const bool is_decode = execution / 50 % 2 == 1;
    work.model = is_decode ? 0x300 : 0x200;
    if (is_decode) work.device = 30;
  };
  SlowBetween(5, 0, 200);
  Run(200);
  const InsightReport report = Judge();
  ASSERT_THAT(report.verdicts, SizeIs(1)) << Texts(report);
  const Verdict& verdict = report.verdicts[0];
  EXPECT_EQ(verdict.role, "model 0x00000200");
  // All but those at an end, and the first of a model: a window has too few of them.
  EXPECT_GE(verdict.executions, 90u);
  EXPECT_LE(verdict.judged, 100u);
  ASSERT_THAT(verdict.also, SizeIs(1)) << Texts(report);
  EXPECT_EQ(verdict.also[0].role, "model 0x00000300");
  EXPECT_GE(verdict.also[0].executions, 90u);
  EXPECT_LE(verdict.also[0].judged, 100u);
  EXPECT_GT(verdict.also[0].since_ns, EndOf(40));
  EXPECT_LT(verdict.since_ns, EndOf(2));
  ExpectEndsIn(verdict, 199);
  EXPECT_THAT(VerdictText(verdict, fleet_.cores),
              HasSubstr(fmt::format("; also in model 0x00000300: {} of {} executions, 1.",
                                    verdict.also[0].executions, verdict.also[0].judged)));
}

// Of interleaved models each is counted by itself.
TEST_F(WindowedJudgeTest, DoesNotAddUpTheExecutionsOfInterleavedModels) {
  fleet_.plan = [](uint32_t, uint32_t execution, FleetWork& work) {
    work.model = execution % 2 == 0 ? 0x200 : 0x300;
    if (execution % 2 == 1) work.device = 30;
  };
  SlowBetween(5, 0, 192);
  Run(192);
  const InsightReport report = Judge();
  ASSERT_THAT(report.verdicts, SizeIs(1)) << Texts(report);
  const Verdict& verdict = report.verdicts[0];
  ASSERT_THAT(verdict.also, SizeIs(1)) << Texts(report);
  EXPECT_LE(verdict.judged, 96u);
  EXPECT_GE(verdict.judged, 90u);
  EXPECT_LE(verdict.also[0].judged, 96u);
  EXPECT_GE(verdict.also[0].judged, 90u);
}

TEST_F(WindowedJudgeTest, AFaultThatMovesIsTwoVerdicts) {
  SlowBetween(5, 0, 160);
  SlowBetween(11, 160, 400);
  Run(400);
  const InsightReport report = Judge();
  ASSERT_THAT(report.verdicts, SizeIs(2)) << Texts(report);
  const bool is_sorted = report.verdicts[0].suspects[0] == 11;
  const Verdict& first = report.verdicts[is_sorted ? 1 : 0];
  const Verdict& second = report.verdicts[is_sorted ? 0 : 1];
  EXPECT_THAT(first.suspects, ElementsAre(5));
  EXPECT_THAT(second.suspects, ElementsAre(11));
  ExpectEndsIn(first, 159);
  ExpectNear(second.since_ns, EndOf(159));
  EXPECT_GT(second.until_ns, EndOf(397));
}

// Wherever a fault of a window's length begins and ends, its times are known to half a window.
TEST_F(WindowedJudgeTest, TimesAreRightWhereverTheFaultIs) {
  for (uint32_t first = 32; first < 64; first += 5) {
    for (const uint32_t length : {40u, 100u}) {
      fleet_ = LockStepFleet(kCores, kPerProcess);
      fleet_.seed = first;
      events_.clear();
      ends_.clear();
      SlowBetween(5, first, first + length);
      Run(220);
      const InsightReport report = Judge();
      ASSERT_THAT(report.verdicts, SizeIs(1)) << first << " " << length << Texts(report);
      EXPECT_THAT(report.verdicts[0].suspects, ElementsAre(5));
      ExpectNear(report.verdicts[0].since_ns, EndOf(first - 1));
      ExpectEndsIn(report.verdicts[0], first + length - 1);
    }
  }
}

TEST_F(WindowedJudgeTest, NamesNobodyInALongCaptureWithoutAFault) {
  Run(500);
  const InsightReport report = Judge();
  EXPECT_THAT(report.verdicts, IsEmpty()) << Texts(report);
  EXPECT_THAT(report.refusals, IsEmpty()) << Texts(report);
  EXPECT_TRUE(report.is_below_cost);
}

TEST_F(WindowedJudgeTest, ALossRefusesOnlyTheWindowThatItTouches) {
  SlowBetween(5, 0, 400);
  Run(400);
  losses_[9] = {{.events = 12, .begin_ns = EndOf(200), .end_ns = EndOf(201)}};
  const InsightReport report = Judge();
  ASSERT_THAT(report.verdicts, SizeIs(1)) << Texts(report);
  EXPECT_THAT(report.verdicts[0].suspects, ElementsAre(5));
  ASSERT_THAT(report.refusals, SizeIs(1)) << Texts(report);
  const Refusal& refusal = report.refusals[0];
  EXPECT_EQ(refusal.reason, RefusalReason::kLosses);
  EXPECT_THAT(refusal.cores, ElementsAre(9));
  EXPECT_EQ(refusal.count, 12u);
  EXPECT_LE(refusal.begin_ns, EndOf(200));
  EXPECT_GE(refusal.end_ns, EndOf(201));
  EXPECT_GT(refusal.refused_ns, EndOf(201) - EndOf(200));
  EXPECT_LT(refusal.refused_ns, refusal.judged_ns / 10) << Texts(report);
  EXPECT_EQ(refusal.end_ns - refusal.begin_ns, refusal.refused_ns);
  EXPECT_THAT(RefusalText(refusal, fleet_.cores), HasSubstr(" not judged: "));
  EXPECT_EQ(report.cores_judged, kCores);
}

// A slow core is named before and after its loss, but not during it.
TEST_F(WindowedJudgeTest, ALossOfTheSlowCoreIsNotJudged) {
  SlowBetween(5, 0, 500);
  Run(500);
  losses_[5] = {{.events = 1, .begin_ns = EndOf(200), .end_ns = EndOf(300)}};
  const InsightReport report = Judge();
  ASSERT_THAT(report.verdicts, SizeIs(2)) << Texts(report);
  for (const Verdict& verdict : report.verdicts) {
    EXPECT_THAT(verdict.suspects, ElementsAre(5));
    EXPECT_TRUE(verdict.until_ns <= EndOf(201) || verdict.since_ns >= EndOf(299)) << Texts(report);
  }
  uint64_t lost_events = 0;
  for (const Refusal& refusal : report.refusals) {
    if (refusal.reason == RefusalReason::kLosses) lost_events += refusal.count;
  }
  EXPECT_EQ(lost_events, 1u);
}

TEST_F(WindowedJudgeTest, ALossAtAnUnknownTimeRefusesAllWindows) {
  Run(200);
  losses_[9] = {{.events = 12}};
  const InsightReport report = Judge();
  ASSERT_THAT(report.refusals, SizeIs(1)) << Texts(report);
  EXPECT_EQ(report.refusals[0].refused_ns, 0u) << "0: the whole capture";
  EXPECT_EQ(report.refusals[0].count, 12u);
  EXPECT_EQ(report.cores_judged, kCores - 1);
}

// Its first windows have too few executions of a step, and later ones have enough of the same.
TEST_F(WindowedJudgeTest, ALaterWindowThatJudgesMakesARefusalSuperfluous) {
  fleet_.plan = [](uint32_t, uint32_t execution, FleetWork& work) {
    work.model = 0x100 + execution % 20;
  };
  Run(300);
  const InsightReport report = Judge();
  EXPECT_THAT(report.refusals, IsEmpty()) << Texts(report);
  EXPECT_EQ(report.cores_judged, kCores);
}

TEST_F(WindowedJudgeTest, AShortCaptureIsRefusedOnce) {
  Run(3);
  const InsightReport report = Judge();
  ASSERT_THAT(report.refusals, SizeIs(1)) << Texts(report);
  EXPECT_EQ(report.refusals[0].reason, RefusalReason::kTooShort);
  EXPECT_THAT(report.refusals[0].cores, SizeIs(kCores));
  EXPECT_EQ(report.cores_judged, 0u);
}

// Cores of another job are not judged at the pace of this one.
TEST_F(WindowedJudgeTest, JobsHaveTheirOwnPace) {
  Run(400);
  for (uint32_t core = 8; core < kCores; ++core) fleet_.cores[core].job = "other";
  // Of the other job, every fourth execution only, with all that happens in between.
  std::erase_if(events_, [](const InsightEvent& event) {
    return event.core >= 8 && (event.exec_id % 4 != 0 || event.exec_id == 0);
  });
  const InsightReport report = Judge();
  EXPECT_THAT(report.verdicts, IsEmpty()) << Texts(report);
  EXPECT_EQ(report.cores_judged, kCores) << Texts(report);
  EXPECT_THAT(report.refusals, IsEmpty()) << Texts(report);
  // 400 and 100 executions.
  EXPECT_EQ(judge_->windows(), 13u + 4u);
}

TEST_F(WindowedJudgeTest, AHangIsFoundAtTheEnd) {
  fleet_.plan = [](uint32_t core, uint32_t execution, FleetWork& work) {
    if (execution == 150) (core == 6 ? work.has_stopped : work.stays_inside) = true;
  };
  Run(151);
  for (CoreCondition& condition : conditions_) condition.alive_at_ns = EndOf(149) + 10'000 * kMs;
  const InsightReport report = Judge();
  ASSERT_THAT(report.verdicts, SizeIs(1)) << Texts(report);
  EXPECT_EQ(report.verdicts[0].kind, VerdictKind::kHangNotEntered);
  EXPECT_THAT(report.verdicts[0].suspects, ElementsAre(6));
  EXPECT_EQ(report.verdicts[0].total_cost_ns, 0u);
  // A stop that may have been lost is not waited for.
  losses_[0] = {
      {.events = 1, .begin_ns = EndOf(149) + 3'000 * kMs, .end_ns = EndOf(149) + 4'000 * kMs}};
  for (const Verdict& verdict : Judge().verdicts) EXPECT_EQ(verdict.waiting, 14u);
}

TEST_F(WindowedJudgeTest, MemoryDoesNotDependOnTheLength) {
  // The fault moves all the time, and there are losses all the time.
  fleet_.plan = [](uint32_t core, uint32_t execution, FleetWork& work) {
    if (core == execution / 64 % kCores) work.device *= 1.5;
  };
  losses_[3].push_back({.events = 1, .begin_ns = 2'000'000'000, .end_ns = 3'000'000'000});
  WindowedJudge judge(fleet_.cores, losses_);
  size_t after_first = 0;
  for (uint32_t i = 0; i < 100; ++i) {
    events_.clear();
    Run(100);
    std::ranges::stable_sort(events_, EndsBefore);
    for (const InsightEvent& event : events_) judge.Take(event);
    if (i == 0) after_first = judge.memory_bytes();
  }
  EXPECT_GE(judge.windows(), 10'000 / WindowedJudge::kWindowExecutions - 1);
  const InsightReport report = judge.Finish(conditions_);
  EXPECT_LE(report.verdicts.size(), 10'000u / 64 + 1);
  EXPECT_GE(report.verdicts.size(), 100u);
  EXPECT_LE(judge.memory_bytes(), after_first + report.verdicts.size() * sizeof(Verdict) +
                                      (report.refusals.size() + 64) * sizeof(Refusal));
  EXPECT_LE(report.executions, uint64_t{kCores} * 10'000);
  // At most two windows of two cores are refused for each of the moves, and for the loss.
  EXPECT_GE(report.executions,
            uint64_t{kCores} * 9'997 - (10'000 / 64 + 1) * 4 * WindowedJudge::kWindowExecutions);
}

}  // namespace
}  // namespace neurontrace
