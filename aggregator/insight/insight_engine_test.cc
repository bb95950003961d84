// SPDX-License-Identifier: Apache-2.0
// Goal: the rule of decision 0044 names the core that others wait for and nobody else, or refuses,
// at each of its constants. Method: a fleet in lock step whose every duration is known.
#include "aggregator/insight/insight_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "aggregator/insight/insight_engine_fixture.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(InsightEngineTest, NamesTheOneCoreWhoseDeviceIsSlow) {
  SlowDevice(5, 1.3);
  const InsightReport report = RunAndJudge();
  ExpectOnly(report, VerdictKind::kSlowCore, {5}, InsightPhase::kDevice);
  const Verdict& verdict = report.verdicts[0];
  EXPECT_NEAR(verdict.ratio, 1.3, 0.01);
  EXPECT_GE(verdict.z, 6);
  EXPECT_EQ(verdict.peers, 15u);
  EXPECT_EQ(verdict.waiting, 15u);
  EXPECT_EQ(verdict.executions, verdict.judged);
  EXPECT_EQ(verdict.op_id, 17u);
  EXPECT_FALSE(verdict.is_barrier);
  EXPECT_NEAR(static_cast<double>(verdict.cost_ns), 12e6, 0.3e6);
  EXPECT_NEAR(static_cast<double>(verdict.step_ns), 59.5e6, 0.5e6);
  EXPECT_GE(report.explained_wait_ns * 10, report.exposed_wait_ns * 8);
  EXPECT_EQ(report.cores_judged, 16u);
}

TEST_F(InsightEngineTest, NamesNobodyWithoutAFault) {
  const InsightReport report = RunAndJudge();
  ExpectNobody(report);
  EXPECT_TRUE(report.is_below_cost);
  EXPECT_EQ(report.cores_judged, 16u);
}

TEST_F(InsightEngineTest, IsSilentBelowFivePercentOfAStep) {
  SlowDevice(5, 1.055);  // 2.2 ms of 49.7 ms
  const InsightReport report = RunAndJudge();
  ExpectNobody(report);
  EXPECT_TRUE(report.is_below_cost);
}

TEST_F(InsightEngineTest, IsSilentBelowAMillisecond) {
  fleet_.plan = [](uint32_t core, uint32_t, FleetWork& work) {
    work = {.gap = 0.1,
            .submit = 0.1,
            .pre = 0.1,
            .device = core == 5 ? 2.0 : 1.2,
            .post = 0.1,
            .transfer = 0.2};
  };
  ExpectNobody(RunAndJudge());
}

TEST_F(InsightEngineTest, RefusesALeadThatNobodysOwnWorkExplains) {
  SlowDevice(5, 1.08);  // 3.2 ms of 50.7 ms, and less than 1.10
  ExpectRefused(RunAndJudge(), RefusalReason::kUnexplained, {5});
}

TEST_F(InsightEngineTest, RefusesWhereTheNamedWorkIsNotEightyPercentOfTheWait) {
  const auto with_second = [&](double ratio) {
    engine_.reset();
    fleet_ = LockStepFleet(16, 4);
    fleet_.plan = [=](uint32_t core, uint32_t, FleetWork& work) {
      if (core == 5) work.device += 12;
      if (core == 9) work.device += 12 * ratio;
    };
    return RunAndJudge();
  };
  // What the second leads by is too little to be named, and not explained by anybody.
  ExpectOnly(with_second(0.18), VerdictKind::kSlowCore, {5}, InsightPhase::kDevice);
  ExpectRefused(with_second(0.24), RefusalReason::kUnexplained, {5, 9});
}

TEST_F(InsightEngineTest, NeedsARatioOfOnePointOne) {
  SlowDevice(5, 1.12);
  ExpectOnly(RunAndJudge(), VerdictKind::kSlowCore, {5}, InsightPhase::kDevice);
}

TEST_F(InsightEngineTest, FourExecutionsNeedAHigherRatio) {
  SlowDevice(5, 1.2, 37);  // executions 37 to 40
  const InsightReport four = RunAndJudge(41);
  EXPECT_THAT(four.verdicts, IsEmpty()) << Texts(four);
  Run(4);
  ExpectOnly(Judge(), VerdictKind::kSlowCore, {5}, InsightPhase::kDevice);
}

TEST_F(InsightEngineTest, NamesALargeSlowdownAfterFourExecutions) {
  SlowDevice(5, 1.5, 37);
  const InsightReport report = RunAndJudge(41);
  ExpectOnly(report, VerdictKind::kSlowCore, {5}, InsightPhase::kDevice);
  EXPECT_EQ(report.verdicts[0].executions, 4u);
  EXPECT_EQ(report.verdicts[0].judged, 40u);
}

TEST_F(InsightEngineTest, SinceIsTheStartOfTheFirstSlowExecution) {
  SlowDevice(5, 1.5, 30);
  Run(30);
  const uint64_t before = fleet_.end_ns(5);
  Run(10);
  const InsightReport report = Judge();
  ASSERT_THAT(report.verdicts, SizeIs(1));
  EXPECT_NEAR(static_cast<double>(report.verdicts[0].since_ns), static_cast<double>(before), 1e5);
  EXPECT_EQ(report.verdicts[0].until_ns, fleet_.end_ns(5));
}

TEST_F(InsightEngineTest, NoiseAboveTheExcessNamesNobody) {
  fleet_.noise = 0.25;
  SlowDevice(5, 1.12);
  const InsightReport report = RunAndJudge();
  for (const Verdict& verdict : report.verdicts)
    EXPECT_EQ(verdict.kind, VerdictKind::kUnevenData) << Texts(report);
}

// Two models in a step; the lengths differ from step to step and core to core.
double LengthOf(uint32_t core, uint32_t draw) {
  return 0.6 +
         0.8 * static_cast<double>((core * 7919 + draw * 104'729 + core * draw * 31) % 97) / 97;
}

TEST_F(InsightEngineTest, WorkThatAStepHasInCommonIsUnevenData) {
  fleet_.plan = [](uint32_t core, uint32_t execution, FleetWork& work) {
    work.model = execution % 2 == 0 ? 0x100 : 0x200;
    work.device *= LengthOf(core, execution / 2);
  };
  ExpectOnly(RunAndJudge(96), VerdictKind::kUnevenData, {}, InsightPhase::kDevice);
}

TEST_F(InsightEngineTest, NoiseOfSingleExecutionsIsNoUnevenData) {
  fleet_.plan = [](uint32_t core, uint32_t execution, FleetWork& work) {
    work.model = execution % 2 == 0 ? 0x100 : 0x200;
    work.device *= LengthOf(core, execution);
  };
  ExpectNobody(RunAndJudge(96));
}

TEST_F(InsightEngineTest, OneExecutionInAStepLeavesUnevenDataUnexplained) {
  fleet_.noise = 0.25;
  ExpectRefused(RunAndJudge(), RefusalReason::kUnexplained, {});
}

// The slow core's peers in other groups wait for it in the second execution of a step only.
TEST_F(InsightEngineTest, NamesACoreThatOthersWaitForInALaterExecution) {
  uint32_t now = 0;
  fleet_.plan = [&now](uint32_t core, uint32_t execution, FleetWork& work) {
    now = execution;
    work.model = execution % 2 == 0 ? 0x100 : 0x200;
    if (core == 5 && execution % 2 == 0) work.device *= 1.5;
  };
  fleet_.group_of = [&now](uint32_t core) { return now % 2 == 0 ? 1 + core / 4 : uint64_t{9}; };
  ExpectOnly(RunAndJudge(96), VerdictKind::kSlowCore, {5}, InsightPhase::kDevice);
}

// Its peers are ahead of it in three executions of four, and wait for it in the fourth.
TEST_F(InsightEngineTest, NamesACoreThatOthersWaitForInFewSteps) {
  uint32_t now = 0;
  fleet_.plan = [&now](uint32_t core, uint32_t execution, FleetWork& work) {
    now = execution;
    if (core == 5) work.device *= 1.2;
  };
  fleet_.group_of = [&now](uint32_t core) { return now % 4 == 3 ? uint64_t{99} : 1 + core; };
  ExpectOnly(RunAndJudge(96), VerdictKind::kSlowCore, {5}, InsightPhase::kDevice);
}

// Its last four executions are alike, but its earlier ones are not.
TEST_F(InsightEngineTest, AFewEqualExecutionsOfANoisyCoreNameNobody) {
  fleet_.plan = [](uint32_t core, uint32_t execution, FleetWork& work) {
    if (core == 5) work.device *= execution < 36 ? LengthOf(core, execution) : 1.5;
  };
  const InsightReport report = RunAndJudge(40);
  EXPECT_THAT(report.verdicts, IsEmpty()) << Texts(report);
}

// Every core is slower or faster than the median for long, so that 32 executions are no evidence.
TEST_F(InsightEngineTest, ACoreAsFarFromTheMedianAsItsPeersIsNotNamed) {
  fleet_.plan = [](uint32_t core, uint32_t, FleetWork& work) {
    work.device *= 0.9 + 0.02 * (core % 10);
    if (core == 5) work.device = 48;
  };
  const InsightReport report = RunAndJudge();
  EXPECT_THAT(report.verdicts, IsEmpty()) << Texts(report);
}

TEST_F(InsightEngineTest, AHostWhoseCoresHaveDifferentRolesIsOneSlowHost) {
  fleet_ = LockStepFleet(32, 4);  // 8 in an instance, 4 of each role
  conditions_.resize(32);
  fleet_.plan = [](uint32_t core, uint32_t, FleetWork& work) {
    work.model = core % 2 == 0 ? 0x100 : 0x200;
    if (core >= 8 && core < 16) work.pre += 20;
  };
  ExpectOnly(RunAndJudge(), VerdictKind::kSlowHost, {8, 9, 10, 11, 12, 13, 14, 15},
             InsightPhase::kPre);
}

// Each core of the group is the last to arrive now and then, so all means contain waits.
TEST_F(InsightEngineTest, WaitsThatGrowAreNoSlowCollective) {
  fleet_.plan = [](uint32_t core, uint32_t execution, FleetWork& work) {
    work.model = execution % 2 == 0 ? 0x100 : 0x200;
    if (execution >= 40) work.device *= LengthOf(core, execution);
  };
  ExpectNobody(RunAndJudge(96));
}

TEST_F(InsightEngineTest, AGroupWithAMemberThatIsRefusedIsJudgedWithIt) {
  fleet_.plan = [](uint32_t core, uint32_t execution, FleetWork& work) {
    if (core == 5 && execution >= 50) work.device *= 2;
  };
  Run(84);
  conditions_[5].lost_events = 3;
  for (const Verdict& verdict : Judge().verdicts)
    EXPECT_NE(verdict.kind, VerdictKind::kSlowCollective);
}

TEST_F(InsightEngineTest, MostCoresOfAnInstanceAreASlowHost) {
  fleet_.plan = [](uint32_t core, uint32_t, FleetWork& work) {
    if (core >= 8 && core < 14) work.pre += 10;
  };
  LockStepFleet larger(32, 4);
  larger.plan = fleet_.plan;
  fleet_ = larger;
  conditions_.resize(32);
  ExpectOnly(RunAndJudge(), VerdictKind::kSlowHost, {8, 9, 10, 11, 12, 13}, InsightPhase::kPre);
}

TEST_F(InsightEngineTest, SeveralSlowDevicesOfAnInstanceAreASlowHost) {
  fleet_ = LockStepFleet(32, 4);
  conditions_.resize(32);
  fleet_.plan = [](uint32_t core, uint32_t, FleetWork& work) {
    if (core >= 8 && core < 16) work.device *= 1.3;
  };
  ExpectOnly(RunAndJudge(), VerdictKind::kSlowHost, {8, 9, 10, 11, 12, 13, 14, 15},
             InsightPhase::kDevice);
}

TEST_F(InsightEngineTest, MostCoresOfAProcessAreASlowProcess) {
  fleet_.plan = [](uint32_t core, uint32_t, FleetWork& work) {
    if (core >= 4 && core < 8) work.post += 10;
  };
  ExpectOnly(RunAndJudge(), VerdictKind::kSlowProcess, {4, 5, 6, 7}, InsightPhase::kPost);
}

TEST_F(InsightEngineTest, OneCoreThatSubmitsSlowlyIsASlowProcess) {
  fleet_.plan = [](uint32_t core, uint32_t, FleetWork& work) {
    if (core == 3) work.submit += 10;
  };
  ExpectOnly(RunAndJudge(), VerdictKind::kSlowProcess, {3}, InsightPhase::kSubmit);
}

TEST_F(InsightEngineTest, AnEmptyGapIsHostCode) {
  fleet_.plan = [](uint32_t core, uint32_t, FleetWork& work) {
    if (core == 3) work.gap += 10;
  };
  ExpectOnly(RunAndJudge(), VerdictKind::kHostCode, {3}, InsightPhase::kGap);
}

TEST_F(InsightEngineTest, AGapOfTensorTransfersIsAnInputStall) {
  fleet_.plan = [](uint32_t core, uint32_t, FleetWork& work) {
    work.io = 1;
    if (core == 3) work.gap += 10;
    if (core == 3) work.io += 6;
  };
  ExpectOnly(RunAndJudge(), VerdictKind::kInputStall, {3}, InsightPhase::kGap);
}

TEST_F(InsightEngineTest, AGapOfAllocationsIsAMemoryStall) {
  fleet_.plan = [](uint32_t core, uint32_t, FleetWork& work) {
    work.io = 1;
    if (core == 3) work.gap += 10;
    if (core == 3) work.memory += 9;
  };
  ExpectOnly(RunAndJudge(), VerdictKind::kMemoryStall, {3}, InsightPhase::kGap);
}

TEST_F(InsightEngineTest, NamesTwoFaultsAtOnce) {
  fleet_.plan = [](uint32_t core, uint32_t, FleetWork& work) {
    if (core == 3) work.gap += 10;
    if (core == 9) work.device += 20;
  };
  const InsightReport report = RunAndJudge();
  ASSERT_THAT(report.verdicts, SizeIs(2)) << Texts(report);
  EXPECT_EQ(report.verdicts[0].kind, VerdictKind::kSlowCore);
  EXPECT_THAT(report.verdicts[0].suspects, ElementsAre(9));
  EXPECT_EQ(report.verdicts[1].kind, VerdictKind::kHostCode);
  EXPECT_THAT(report.verdicts[1].suspects, ElementsAre(3));
  EXPECT_THAT(report.refusals, IsEmpty()) << Texts(report);
}

TEST_F(InsightEngineTest, RefusesTwoFaultsWithinTwentyPercent) {
  fleet_.plan = [](uint32_t core, uint32_t, FleetWork& work) {
    if (core == 3) work.device += 18;
    if (core == 9) work.device += 20;
  };
  ExpectRefused(RunAndJudge(), RefusalReason::kTwoCandidates, {3, 9});
}

TEST_F(InsightEngineTest, ASlowTransferIsASlowCollective) {
  fleet_.plan = [](uint32_t, uint32_t execution, FleetWork& work) {
    work.transfer = execution < 50 ? 4 : 10;
  };
  const InsightReport report = RunAndJudge(84);
  ExpectOnly(report, VerdictKind::kSlowCollective, AllCores(), InsightPhase::kTransfer);
  EXPECT_EQ(report.verdicts[0].op_id, 17u);
  EXPECT_GE(report.verdicts[0].ratio, 1.5);
}

TEST_F(InsightEngineTest, ASlowTransferExcludesLateArrivalWithWaitsOfTheSlowTime) {
  fleet_.plan = [](uint32_t, uint32_t execution, FleetWork& work) {
    work.transfer = execution < 50 ? 4 : 40;
  };
  // So soon after the change, a member's mean is still below the transfer.
  const InsightReport report = RunAndJudge(84);
  ExpectOnly(report, VerdictKind::kSlowCollective, AllCores(), InsightPhase::kTransfer);
  ASSERT_EQ(report.verdicts[0].ruled_out.size(), 1u);
  EXPECT_THAT(report.verdicts[0].ruled_out[0].figure, Not(HasSubstr("-")));
}

TEST_F(InsightEngineTest, ATransferOfLessThanOnePointFourFiveIsNone) {
  fleet_.plan = [](uint32_t, uint32_t execution, FleetWork& work) {
    work.transfer = execution < 50 ? 10 : 14;
  };
  ExpectNobody(RunAndJudge(84));
}

TEST_F(InsightEngineTest, ARoleWithMoreWorkIsUnevenAndNamesNoRank) {
  fleet_.plan = [](uint32_t core, uint32_t, FleetWork& work) {
    work.model = 0x100 + core / 4;
    if (core >= 12) work.device *= 1.4;
  };
  Run();
  engine_->NameModel(0x103, "last stage");
  const InsightReport report = Judge();
  ExpectOnly(report, VerdictKind::kUnevenRole, {}, InsightPhase::kDevice);
  EXPECT_EQ(report.verdicts[0].role, "last stage");
  EXPECT_EQ(report.verdicts[0].waiting, 12u);
}

TEST_F(InsightEngineTest, ASlowCoreOfAnUnevenRoleIsNamedAmongItsPeers) {
  fleet_.plan = [](uint32_t core, uint32_t, FleetWork& work) {
    work.model = 0x100 + core / 8;
    if (core >= 8) work.device *= 1.4;
    if (core == 9) work.device *= 1.5;
  };
  const InsightReport report = RunAndJudge();
  ASSERT_THAT(report.verdicts, SizeIs(2)) << Texts(report);
  EXPECT_EQ(report.verdicts[0].kind, VerdictKind::kSlowCore);
  EXPECT_THAT(report.verdicts[0].suspects, ElementsAre(9));
  EXPECT_EQ(report.verdicts[1].kind, VerdictKind::kUnevenRole);
}

TEST_F(InsightEngineTest, RefusesRolesWithoutPeers) {
  fleet_.plan = [](uint32_t core, uint32_t, FleetWork& work) {
    work.model = core < 3 ? 0x100 : 0x200;
    if (core == 1) work.device *= 1.5;
  };
  ExpectRefused(RunAndJudge(), RefusalReason::kFewPeers, {0, 1, 2});
}

TEST_F(InsightEngineTest, WithoutAModelEightPeersAreNeeded) {
  fleet_ = LockStepFleet(9, 4);
  conditions_.resize(9);
  fleet_.plan = [](uint32_t core, uint32_t, FleetWork& work) {
    work.model = 0;
    if (core == 1) work.device *= 1.5;
  };
  ExpectOnly(RunAndJudge(), VerdictKind::kSlowCore, {1}, InsightPhase::kDevice);
  engine_.reset();
  const auto plan = fleet_.plan;
  fleet_ = LockStepFleet(8, 4);
  fleet_.plan = plan;
  conditions_.resize(8);
  ExpectRefused(RunAndJudge(), RefusalReason::kFewPeers, AllCores());
}

TEST_F(InsightEngineTest, RefusesCoresWithLosses) {
  SlowDevice(5, 1.5);
  conditions_[5].lost_events = 7;
  conditions_[5].loss_begin_ns = 100;
  conditions_[5].loss_end_ns = 200;
  const InsightReport report = RunAndJudge();
  ExpectRefused(report, RefusalReason::kLosses, {5});
  EXPECT_EQ(report.refusals[0].begin_ns, 100u);
  EXPECT_EQ(report.refusals[0].end_ns, 200u);
  EXPECT_EQ(report.refusals[0].count, 7u);
}

TEST_F(InsightEngineTest, RefusesAJobThatIsNotCovered) {
  for (InsightCore& core : fleet_.cores) core.world_size = 18;  // 89 %
  SlowDevice(5, 1.5);
  ExpectRefused(RunAndJudge(), RefusalReason::kCoverage, AllCores());
  engine_.reset();
  fleet_ = LockStepFleet(16, 4);
  for (InsightCore& core : fleet_.cores) core.world_size = 17;
  SlowDevice(5, 1.5);
  ExpectOnly(RunAndJudge(), VerdictKind::kSlowCore, {5}, InsightPhase::kDevice);
}

TEST_F(InsightEngineTest, RefusesACoreWhoseIdsContradictTime) {
  fleet_.plan = [](uint32_t core, uint32_t, FleetWork& work) {
    if (core == 5) work.exec_id_shift = 3;
  };
  ExpectRefused(RunAndJudge(), RefusalReason::kContradiction, {5});
}

TEST_F(InsightEngineTest, RefusesACoreWhoseIdsDoNotIncrease) {
  fleet_.plan = [](uint32_t core, uint32_t execution, FleetWork& work) {
    if (core == 5) work.exec_id_shift = 1000 - 2 * execution;
  };
  ExpectRefused(RunAndJudge(), RefusalReason::kContradiction, {5});
}

TEST_F(InsightEngineTest, RefusesAnUnknownSequence) {
  fleet_.plan = [](uint32_t, uint32_t execution, FleetWork& work) {
    work.model = 0x100 + execution * execution;
  };
  ExpectRefused(RunAndJudge(30), RefusalReason::kRoleUnknown, AllCores());
}

TEST_F(InsightEngineTest, RefusesTooFewExecutions) {
  SlowDevice(5, 2);
  ExpectRefused(RunAndJudge(4), RefusalReason::kTooShort, AllCores());
  Run(1);  // the first has no beginning
  ExpectOnly(Judge(), VerdictKind::kSlowCore, {5}, InsightPhase::kDevice);
}

TEST_F(InsightEngineTest, HalfOfTheCoresAreNotNamed) {
  fleet_.plan = [](uint32_t core, uint32_t, FleetWork& work) {
    if (core % 2 == 1) work.device *= 1.5;
  };
  const InsightReport report = RunAndJudge();
  EXPECT_THAT(report.verdicts, IsEmpty()) << Texts(report);
}

TEST_F(InsightEngineTest, NamesACoreThatIsSlowInOneModelOfItsSequence) {
  fleet_.plan = [](uint32_t core, uint32_t execution, FleetWork& work) {
    work.model = execution % 3 == 2 ? 0x200 : 0x100;
    if (core == 5 && execution % 3 == 2) work.device *= 1.6;
  };
  Run(60);
  engine_->NameModel(0x200, "backward");
  const InsightReport report = Judge();
  ExpectOnly(report, VerdictKind::kSlowCore, {5}, InsightPhase::kDevice);
  EXPECT_EQ(report.verdicts[0].role, "backward");
  EXPECT_NEAR(static_cast<double>(report.verdicts[0].step_ns), 3 * 47.5e6 + 24e6, 1e6);
  EXPECT_NEAR(static_cast<double>(report.verdicts[0].cost_ns), 24e6, 1e6);
}

TEST_F(InsightEngineTest, GroupsThatDoNotMeetAreJudgedAlone) {
  fleet_.group_of = [](uint32_t core) { return uint64_t{1} + core / 8; };
  SlowDevice(5, 1.5);
  const InsightReport report = RunAndJudge();
  ExpectOnly(report, VerdictKind::kSlowCore, {5}, InsightPhase::kDevice);
  EXPECT_EQ(report.verdicts[0].peers, 7u);
  EXPECT_EQ(report.verdicts[0].waiting, 7u);
  EXPECT_EQ(report.verdicts[0].group, 1u);
}

// What the rule reads has no order between cores.
TEST_F(InsightEngineTest, TheInterleavingOfCoresHasNoEffect) {
  fleet_.noise = 0.05;
  fleet_.plan = [](uint32_t core, uint32_t execution, FleetWork& work) {
    if (core == 3) work.gap += 10;
    if (core == 9 && execution > 20) work.device += 25;
  };
  const auto events = fleet_.Run(60);
  std::string expected;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    engine_.emplace(fleet_.cores);
    std::vector<size_t> next(events.size(), 0);
    uint64_t random = seed + 1;
    for (size_t left = 0; left < events.size();) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      // Seed 0: one core after the other.
      const size_t core = seed == 0 ? left : (random >> 33) % events.size();
      const size_t burst = seed == 0 ? events[core].size() : 1 + (random >> 40) % 50;
      for (size_t i = 0; i < burst && next[core] < events[core].size(); ++i)
        engine_->Take(events[core][next[core]++]);
      while (left < events.size() && next[left] == events[left].size()) ++left;
    }
    const InsightReport report = Judge();
    if (seed == 0) {
      EXPECT_THAT(report.verdicts, SizeIs(2)) << Texts(report);
      expected = Texts(report);
    } else {
      EXPECT_EQ(Texts(report), expected);
    }
  }
}

TEST_F(InsightEngineTest, AWindowHasItsOwnExecutionsOnly) {
  SlowDevice(5, 1.5);
  Run(20);
  EXPECT_THAT(Judge().verdicts, SizeIs(1));
  engine_->StartWindow();
  fleet_.plan = nullptr;
  Run(3);
  ExpectRefused(Judge(), RefusalReason::kTooShort, AllCores());
  Run(10);
  ExpectNobody(Judge());
  engine_->StartWindow();
  SlowDevice(7, 1.5);
  Run(8);
  ExpectOnly(Judge(), VerdictKind::kSlowCore, {7}, InsightPhase::kDevice);
}

TEST_F(InsightEngineTest, ACoreThatJoinsIsJudgedFromThenOn) {
  const std::vector<InsightCore> all = fleet_.cores;
  engine_.emplace(std::vector<InsightCore>(all.begin(), all.end() - 1));
  EXPECT_EQ(engine_->AddCore(all.back()), 15u);
  SlowDevice(15, 1.5);
  ExpectOnly(RunAndJudge(), VerdictKind::kSlowCore, {15}, InsightPhase::kDevice);
}

TEST_F(InsightEngineTest, MemoryHasALimitForEachCore) {
  Run(2000);
  // One operation of each core.
  const size_t before = engine_->memory_bytes();
  EXPECT_LE(before, 16 * (InsightEngine::kBytesPerCoreMax - 1'000));
  uint64_t time = fleet_.end_ns(0);
  for (uint64_t i = 0; i < 100'000; ++i, time += 1000) {
    engine_->Take({.kind = InsightClass::kCollective,
                   .start_ns = time,
                   .end_ns = time + 500,
                   .exec_id = i,
                   .op_id = i,
                   .group = i});
    engine_->Take({.kind = InsightClass::kCollective,
                   .is_open = true,
                   .start_ns = time + i,
                   .end_ns = time + i});
  }
  EXPECT_LE(engine_->memory_bytes(), before + 38 * 64);
  EXPECT_LE(engine_->memory_bytes(),
            16 * (InsightEngine::kBytesPerCoreMax + sizeof(InsightCore) + sizeof(void*)));
  const InsightReport report = Judge();
  const auto limits =
      std::count_if(report.refusals.begin(), report.refusals.end(),
                    [](const Refusal& refusal) { return refusal.reason == RefusalReason::kLimit; });
  EXPECT_GE(limits, 1) << Texts(report);
}

}  // namespace
}  // namespace neurontrace
