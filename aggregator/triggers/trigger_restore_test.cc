// SPDX-License-Identifier: Apache-2.0
// The goal: a restart of the aggregator is no way round a cool-down or a number an hour. What was
// stored is told to a new engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/triggers/trigger_engine.h"
#include "aggregator/triggers/trigger_test_support.h"

namespace neurontrace {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
constexpr uint64_t kNsPerSecond = FakeTriggerWorld::kSecondNs;

class TriggerRestoreTest : public testing::Test {
 protected:
  CaptureRecord Record(uint8_t number, uint64_t began_realtime_ns) {
    CaptureRecord record{.id = FakeTriggerWorld::Id(number)};
    record.spec.job = "j";
    record.spec.cause = "trigger slow: number " + std::to_string(number);
    record.spec.labels = {{"team", "a"}, {"trigger", "slow"}};
    record.started_realtime_ns = began_realtime_ns;
    return record;
  }
  void Fire() {
    engine_.OnFired(FakeTriggerWorld::Fired("slow", "j", 1));
    runner_.AdvanceNs(TriggerEngine::kGatherNs);
  }

  FakeClock clock_;
  FakeTaskRunner runner_{clock_};
  FakeTriggerWorld world_;
  TriggerEngine engine_{clock_, runner_, world_.Make()};
};

TEST_F(TriggerRestoreTest, CoolsDownFromBeforeTheRestart) {
  const uint64_t now_ns = clock_.RealtimeNs();
  engine_.Restore(Record(7, now_ns - 50 * kNsPerSecond));
  engine_.Restore(Record(6, now_ns - 5'000 * kNsPerSecond));
  engine_.SetRules({FakeTriggerWorld::Rule("slow")});
  EXPECT_EQ(engine_.List()[0].fired, 2u);
  EXPECT_EQ(engine_.List()[0].last_capture, FakeTriggerWorld::Id(7));
  EXPECT_EQ(engine_.List()[0].last_cause, "trigger slow: number 7");
  Fire();
  EXPECT_THAT(world_.started, IsEmpty());
  runner_.AdvanceNs(10 * kNsPerSecond - TriggerEngine::kGatherNs);
  Fire();
  EXPECT_THAT(world_.started, SizeIs(1));
}

TEST_F(TriggerRestoreTest, CountsTheHourFromBeforeTheRestart) {
  const uint64_t now_ns = clock_.RealtimeNs();
  for (uint8_t i = 1; i <= 3; ++i) engine_.Restore(Record(i, now_ns - i * 1'000 * kNsPerSecond));
  engine_.SetRules({FakeTriggerWorld::Rule("slow")});
  Fire();
  EXPECT_THAT(world_.started, IsEmpty());
  runner_.AdvanceNs(600 * kNsPerSecond);  // the oldest is an hour old
  Fire();
  EXPECT_THAT(world_.started, SizeIs(1));
}

TEST_F(TriggerRestoreTest, OneThatDidNotBeginIsNotCounted) {
  CaptureRecord record = Record(7, clock_.RealtimeNs() - 20 * kNsPerSecond);
  record.state = CaptureState::kNotBegun;
  engine_.Restore(record);
  engine_.SetRules({FakeTriggerWorld::Rule("slow")});
  EXPECT_EQ(engine_.List()[0].fired, 0u);
  Fire();
  EXPECT_THAT(world_.started, SizeIs(1));
}

TEST_F(TriggerRestoreTest, GoesOnWithACaptureUnderWay) {
  engine_.Restore(Record(7, clock_.RealtimeNs() - 90 * kNsPerSecond));
  world_.running[FakeTriggerWorld::Id(7)] = true;
  engine_.SetRules({FakeTriggerWorld::Rule("slow")});
  Fire();
  EXPECT_THAT(world_.started, IsEmpty());
}

TEST_F(TriggerRestoreTest, IsNotHeldForEverByAClockThatWasSetBack) {
  engine_.Restore(Record(7, clock_.RealtimeNs() + 1'000'000 * kNsPerSecond));
  engine_.Restore(Record(8, UINT64_MAX));
  engine_.SetRules({FakeTriggerWorld::Rule("slow")});
  Fire();
  EXPECT_THAT(world_.started, IsEmpty());
  runner_.AdvanceNs(60 * kNsPerSecond);
  Fire();
  EXPECT_THAT(world_.started, SizeIs(1));
}

TEST_F(TriggerRestoreTest, PassesOverCapturesOfPeople) {
  CaptureRecord record = Record(7, clock_.RealtimeNs());
  record.spec.labels = {{"team", "slow"}};
  engine_.Restore(record);
  record.started_realtime_ns = 0;
  record.spec.labels = {{"trigger", "slow"}};
  engine_.Restore(record);  // of 1970
  engine_.SetRules({FakeTriggerWorld::Rule("slow")});
  Fire();
  EXPECT_THAT(world_.started, SizeIs(1));
}

}  // namespace
}  // namespace neurontrace
