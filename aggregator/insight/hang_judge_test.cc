// SPDX-License-Identifier: Apache-2.0
// Goal: of a hang, the cores that did not enter are named, or those that ended or failed, and
// silence is refused. Method: a fleet in lock step that stops in a known execution.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "aggregator/insight/insight_engine_fixture.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class HangTest : public InsightEngineTest {
 protected:
  // All enter the collective of execution 20 and stay, but those that stop before it.
  void HangAt20(std::vector<uint32_t> stopped, double transfer_ms = 4) {
    fleet_.plan = [=](uint32_t core, uint32_t execution, FleetWork& work) {
      work.transfer = transfer_ms;
      if (execution != 20) return;
      const bool stops = std::find(stopped.begin(), stopped.end(), core) != stopped.end();
      (stops ? work.has_stopped : work.stays_inside) = true;
    };
    Run(21);
  }
};

TEST_F(HangTest, NamesTheCoreThatHasNotEntered) {
  HangAt20({6});
  StayAlive(3 * kNsPerSecond);
  const InsightReport report = Judge();
  ASSERT_THAT(report.verdicts, SizeIs(1)) << Texts(report);
  EXPECT_EQ(report.verdicts[0].kind, VerdictKind::kHangNotEntered);
  EXPECT_THAT(report.verdicts[0].suspects, ElementsAre(6));
  EXPECT_EQ(report.verdicts[0].waiting, 15u);
  EXPECT_EQ(report.verdicts[0].exec_id, 21u);
  EXPECT_EQ(report.verdicts[0].op_id, 17u);
  EXPECT_THAT(report.refusals, IsEmpty()) << Texts(report);
}

TEST_F(HangTest, ACoreThatStoppedInAnEarlierOperationHasNotEntered) {
  // Nothing is read of a process that was stopped: its stop in execution 10 is not seen.
  fleet_.plan = [](uint32_t core, uint32_t execution, FleetWork& work) {
    work.stays_inside = execution == (core == 6 || core == 7 ? 10 : 20);
  };
  Run(21);
  StayAlive(3 * kNsPerSecond);
  const uint64_t begin_ns = fleet_.end_ns(5) - fleet_.end_ns(6);  // they share a clock
  for (const uint32_t core : {6, 7}) conditions_[core].alive_at_ns += begin_ns;
  const InsightReport report = Judge();
  ExpectOnly(report, VerdictKind::kHangNotEntered, {6, 7}, report.verdicts.at(0).phase);
  EXPECT_EQ(report.verdicts[0].waiting, 14u);
}

TEST_F(HangTest, TwoSecondsAreNoHang) {
  HangAt20({6});
  StayAlive(2 * kNsPerSecond - 1);
  EXPECT_THAT(Judge().verdicts, IsEmpty());
  StayAlive(2 * kNsPerSecond + 1);
  EXPECT_THAT(Judge().verdicts, SizeIs(1));
}

TEST_F(HangTest, LongOperationsHangAfterEightTimesTheirUsualLength) {
  HangAt20({6}, 400);  // up to 500 ms are one bucket
  StayAlive(4 * kNsPerSecond - 1);
  EXPECT_THAT(Judge().verdicts, IsEmpty());
  StayAlive(4 * kNsPerSecond + 1);
  EXPECT_THAT(Judge().verdicts, SizeIs(1));
}

TEST_F(HangTest, RefusesASilentCoreWithoutACanary) {
  HangAt20({6});
  StayAlive(3 * kNsPerSecond);
  conditions_[6].alive_at_ns = 0;
  ExpectRefused(Judge(), RefusalReason::kNoCanary, {6});
}

TEST_F(HangTest, RefusesOnceWhoseAgentIsAway) {
  HangAt20({6});
  StayAlive(3 * kNsPerSecond);
  conditions_[6].alive_at_ns = 0;
  conditions_[6].is_silent = true;
  ExpectRefused(Judge(), RefusalReason::kNoCanary, {6});
}

TEST_F(HangTest, AllInsideIsAHangInside) {
  HangAt20({});
  StayAlive(3 * kNsPerSecond);
  const InsightReport report = Judge();
  ASSERT_THAT(report.verdicts, SizeIs(1)) << Texts(report);
  EXPECT_EQ(report.verdicts[0].kind, VerdictKind::kHangInside);
  EXPECT_EQ(report.verdicts[0].suspects, AllCores());
}

TEST_F(HangTest, RefusesAHangInsideIfARankIsNotInTheCapture) {
  fleet_.cores[0].world_size = 17;
  HangAt20({});
  StayAlive(3 * kNsPerSecond);
  ExpectRefused(Judge(), RefusalReason::kCoverage, AllCores());
}

TEST_F(HangTest, AnEndedProcessIsADeadWorker) {
  HangAt20({4, 5, 6, 7});
  StayAlive(3 * kNsPerSecond);
  for (const uint32_t core : {4, 5, 6, 7}) conditions_[core].has_ended = true;
  const InsightReport report = Judge();
  ASSERT_THAT(report.verdicts, SizeIs(1)) << Texts(report);
  EXPECT_EQ(report.verdicts[0].kind, VerdictKind::kDeadWorker);
  EXPECT_THAT(report.verdicts[0].suspects, ElementsAre(4, 5, 6, 7));
}

// At the end of a job the stops of its last operations may never be recorded.
TEST_F(HangTest, AProcessThatClosedItsRuntimeWaitsForNothing) {
  HangAt20({});
  StayAlive(3 * kNsPerSecond);
  for (CoreCondition& condition : conditions_) condition.has_ended = condition.ended_orderly = true;
  EXPECT_THAT(Judge().verdicts, IsEmpty());
  // Others wait for it all the same.
  conditions_[6] = {.alive_at_ns = conditions_[6].alive_at_ns};
  const InsightReport report = Judge();
  ASSERT_THAT(report.verdicts, SizeIs(1)) << Texts(report);
  EXPECT_EQ(report.verdicts[0].kind, VerdictKind::kDeadWorker);
  EXPECT_EQ(report.verdicts[0].waiting, 1u);
}

TEST_F(HangTest, AnErrorSinceTheLastExecutionIsADeviceError) {
  HangAt20({6});
  const uint64_t time = fleet_.end_ns(6) + 1000;
  engine_->Take({.core = 6, .kind = InsightClass::kError, .start_ns = time, .end_ns = time});
  StayAlive(3 * kNsPerSecond);
  const InsightReport report = Judge();
  ASSERT_THAT(report.verdicts, SizeIs(1)) << Texts(report);
  EXPECT_EQ(report.verdicts[0].kind, VerdictKind::kDeviceError);
  EXPECT_THAT(report.verdicts[0].suspects, ElementsAre(6));
}

TEST_F(HangTest, AnErrorWithoutAHangIsNoVerdict) {
  Run(40);
  engine_->Take({.core = 6,
                 .kind = InsightClass::kError,
                 .start_ns = fleet_.end_ns(6) + 1,
                 .end_ns = fleet_.end_ns(6) + 1});
  ExpectNobody(Judge());
}

TEST_F(HangTest, ACoreThatLostEventsIsNotReportedAsMissing) {
  HangAt20({6});
  StayAlive(3 * kNsPerSecond);
  conditions_[6].lost_events = 1;
  ExpectRefused(Judge(), RefusalReason::kLosses, {6});
}

TEST_F(HangTest, RefusesIfACoreHasLeftWhatOthersAreIn) {
  Run(40);
  for (uint32_t core = 0; core < 8; ++core) {
    engine_->Take({.core = core,
                   .kind = InsightClass::kCollective,
                   .is_open = true,
                   .start_ns = fleet_.end_ns(core) + 1,
                   .end_ns = fleet_.end_ns(core) + 2,
                   .exec_id = 30,
                   .op_id = 17,
                   .model = 0x100});
  }
  StayAlive(3 * kNsPerSecond);
  const InsightReport report = Judge();
  EXPECT_THAT(report.verdicts, IsEmpty()) << Texts(report);
  ASSERT_THAT(report.refusals, SizeIs(1)) << Texts(report);
  EXPECT_EQ(report.refusals[0].reason, RefusalReason::kContradiction);
}

}  // namespace
}  // namespace neurontrace
