// SPDX-License-Identifier: Apache-2.0
// Goal: a capture by execution records its executions, all of them and nothing else, whatever order
// their events come in, and no number that a worker writes breaks it.
#include "agent/source/neuron/capture/execution_gate.h"

#include <gtest/gtest.h>

#include "agent/source/neuron/capture/execution_summary.h"

namespace neurontrace {
namespace {

class ExecutionGateTest : public ::testing::Test {
 protected:
  bool Executes(uint64_t execution) {
    return gate_.Admit({"kbl_exec_pre", Phase::kInstant, std::nullopt, execution});
  }
  bool Start(uint64_t tracking_id, std::optional<uint64_t> execution = std::nullopt) {
    return gate_.Admit({"nc_exec_running", Phase::kStart, tracking_id, execution});
  }
  bool Stop(uint64_t tracking_id) {
    return gate_.Admit({"nc_exec_running", Phase::kStop, tracking_id, std::nullopt});
  }
  bool Plain() { return gate_.Admit({"nrt_tensor_read", Phase::kInstant, {}, {}}); }
  static Loss Lost(uint64_t events) {
    return {.place = LossPlace::kRuntimeRing, .reason = LossReason::kOverwritten, .events = events};
  }
  ExecutionProgress ProgressWith(const ExecutionBounds& bounds) {
    ExecutionSummary summary(bounds);
    summary.Add(gate_);
    return summary.progress();
  }

  ExecutionGate gate_{true};
};

TEST_F(ExecutionGateTest, WithoutAGateAllPassesAndExecutionsAreSeen) {
  gate_ = ExecutionGate(false);
  EXPECT_TRUE(Plain());
  EXPECT_TRUE(Executes(8));
  EXPECT_TRUE(Executes(7));
  EXPECT_TRUE(gate_.TakeLoss(Lost(1)));
  EXPECT_EQ(ProgressWith({}).first, 7u);
  EXPECT_EQ(ProgressWith({}).newest, 8u);
}

TEST_F(ExecutionGateTest, WithoutAFirstItOnlyWatches) {
  EXPECT_FALSE(Plain());
  EXPECT_FALSE(Executes(41));
  EXPECT_FALSE(gate_.TakeLoss(Lost(1)));
  EXPECT_EQ(gate_.newest(), 41u);
  EXPECT_EQ(gate_.first(), std::nullopt);
  gate_.SetBounds({44, 0});
  EXPECT_FALSE(Executes(43));
  EXPECT_TRUE(Executes(44));
  EXPECT_TRUE(Plain());
  EXPECT_EQ(gate_.first(), 44u);
}

TEST_F(ExecutionGateTest, RecordsFromTheFirstToTheEndOfTheLast) {
  gate_.SetBounds({10, 11});
  EXPECT_FALSE(Start(1, 9));
  EXPECT_FALSE(Plain());
  EXPECT_TRUE(Start(2, 10));
  EXPECT_FALSE(Stop(1));  // of 9, as its start
  EXPECT_TRUE(Plain());
  EXPECT_TRUE(Start(3, 11));
  EXPECT_FALSE(Start(4, 12));  // queued behind it
  EXPECT_FALSE(gate_.past());
  EXPECT_TRUE(Plain());
  EXPECT_TRUE(Stop(2));
  EXPECT_FALSE(gate_.past());
  EXPECT_TRUE(Stop(3));
  EXPECT_TRUE(gate_.past());
  EXPECT_FALSE(Plain());
  EXPECT_FALSE(Stop(4));
  EXPECT_TRUE(Executes(11));  // late, and its own
  EXPECT_EQ(gate_.first(), 10u);
  EXPECT_EQ(gate_.newest(), 12u);
}

TEST_F(ExecutionGateTest, ASpanThatNeverStopsHoldsTheEndUpOnlySoLong) {
  gate_.SetBounds({10, 11});
  EXPECT_TRUE(Start(1, 11));
  EXPECT_FALSE(Executes(11 + ExecutionGate::kInFlightMax - 1));
  EXPECT_FALSE(gate_.past());
  EXPECT_FALSE(Executes(11 + ExecutionGate::kInFlightMax));
  EXPECT_TRUE(gate_.past());
  EXPECT_TRUE(Stop(1));
}

TEST_F(ExecutionGateTest, TakesExecutionsOutOfOrderRepeatedAndMissing) {
  gate_.SetBounds({10, 20});
  EXPECT_TRUE(Executes(13));  // 10 to 12 are missing, or late
  EXPECT_TRUE(Executes(11));
  EXPECT_TRUE(Executes(11));
  EXPECT_FALSE(Executes(9));
  EXPECT_TRUE(Plain());
  EXPECT_EQ(gate_.first(), 11u);
  EXPECT_FALSE(Executes(21));
  EXPECT_TRUE(gate_.past());
  EXPECT_FALSE(Executes(9));
  EXPECT_EQ(gate_.newest(), 21u);
}

TEST_F(ExecutionGateTest, ACoreThatMissedAllOfThemIsBehindAtOnce) {
  gate_.SetBounds({10, 11});
  EXPECT_FALSE(Executes(30));
  EXPECT_TRUE(gate_.past());
  EXPECT_FALSE(Plain());
  EXPECT_EQ(gate_.first(), std::nullopt);
}

TEST_F(ExecutionGateTest, OneExecutionMayBeAllOfIt) {
  gate_.SetBounds({10, 10});
  EXPECT_FALSE(Executes(9));
  EXPECT_TRUE(Executes(10));
  EXPECT_FALSE(Executes(11));
  EXPECT_TRUE(gate_.past());
}

TEST_F(ExecutionGateTest, SentinelNumbersAreNone) {
  gate_.SetBounds({10, 0});
  EXPECT_FALSE(Executes(UINT64_MAX));
  EXPECT_FALSE(Executes(UINT32_MAX));
  EXPECT_EQ(gate_.newest(), std::nullopt);
  EXPECT_TRUE(Executes(10));
  EXPECT_TRUE(Executes(UINT64_MAX));  // one without a number, of an open core
  EXPECT_EQ(gate_.newest(), 10u);
}

TEST_F(ExecutionGateTest, IgnoresOutOfRangeNumber) {
  gate_.SetBounds({1'000, 1'010});
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(Executes(900 + i));
    EXPECT_FALSE(Executes(UINT64_MAX - 1));
  }
  EXPECT_EQ(gate_.newest(), 999u);
  EXPECT_TRUE(Executes(1'000));
  EXPECT_TRUE(Executes(uint64_t{1} << 50));
  EXPECT_TRUE(Executes(1'001));
  EXPECT_FALSE(gate_.past());
  EXPECT_EQ(gate_.newest(), 1'001u);
}

TEST_F(ExecutionGateTest, AcceptsShiftedCountEventually) {
  const uint64_t far = uint64_t{1} << 40;
  for (uint32_t i = 1; i < ExecutionGate::kDoubtsMax; ++i) {
    EXPECT_FALSE(Executes(far));
    EXPECT_EQ(gate_.newest(), std::nullopt);
  }
  EXPECT_FALSE(Executes(far + 1));
  EXPECT_EQ(gate_.newest(), far + 1);
  // What the operator named is believed where it is met.
  gate_ = ExecutionGate(true);
  gate_.SetBounds({far + 5, 0});
  EXPECT_FALSE(Executes(far + 4));
  EXPECT_EQ(gate_.newest(), far + 4);
  EXPECT_TRUE(Executes(far + 5));
}

TEST_F(ExecutionGateTest, BoundsAtTheEndOfTheNumbersDoNotWrap) {
  gate_.SetBounds({UINT64_MAX - 2, UINT64_MAX});
  EXPECT_TRUE(Executes(UINT64_MAX - 1));
  EXPECT_FALSE(gate_.past());
  gate_ = ExecutionGate(true);
  gate_.SetBounds({UINT64_MAX, UINT64_MAX});
  EXPECT_FALSE(Executes(UINT64_MAX - 1));
  EXPECT_FALSE(Executes(0));
  EXPECT_FALSE(gate_.passing());
}

TEST_F(ExecutionGateTest, RestartsWithRestartedRuntime) {
  EXPECT_FALSE(Executes(500));
  gate_.BeginTrace();
  EXPECT_EQ(gate_.newest(), std::nullopt);
  EXPECT_FALSE(Executes(3));
  EXPECT_EQ(gate_.newest(), 3u);
  gate_.SetBounds({4, 0});
  EXPECT_TRUE(Executes(4));
  gate_.BeginTrace();
  EXPECT_TRUE(gate_.passing());
  EXPECT_FALSE(Executes(0));
  EXPECT_EQ(gate_.newest(), 4u);
}

TEST_F(ExecutionGateTest, ResumedCoreIsOpenBeforeBoundsArrive) {
  gate_.ResumeOpen();
  EXPECT_TRUE(Plain());
  EXPECT_TRUE(Executes(12));
  gate_.SetBounds({10, 12});
  EXPECT_TRUE(Executes(11));
  EXPECT_FALSE(Executes(13));
  EXPECT_TRUE(gate_.past());
}

TEST_F(ExecutionGateTest, MoreOpenSpansThanAreRememberedFollowTheirCore) {
  gate_.SetBounds({10, 0});
  for (uint64_t id = 0; id < ExecutionGate::kSpansMax; ++id) EXPECT_FALSE(Start(id));
  EXPECT_TRUE(Executes(10));
  EXPECT_FALSE(Stop(0));
  EXPECT_TRUE(Start(1'000'000));
  EXPECT_TRUE(Start(1'000'001));  // the one too many
  EXPECT_TRUE(Stop(1));
  EXPECT_TRUE(Stop(1'000'001));
}

TEST_F(ExecutionGateTest, LossesCountFromTheFirstToTheLast) {
  gate_.SetBounds({10, 11});
  EXPECT_FALSE(Executes(8));
  EXPECT_FALSE(gate_.TakeLoss(Lost(5)));  // before a document that has 8
  EXPECT_TRUE(gate_.EndDocument().empty());
  EXPECT_TRUE(Executes(10));
  EXPECT_TRUE(gate_.EndDocument().empty());
  EXPECT_TRUE(Executes(11));
  EXPECT_TRUE(gate_.TakeLoss(Lost(5)));
  EXPECT_FALSE(Executes(12));
  EXPECT_TRUE(gate_.TakeLoss(Lost(5)));  // before this document's 12
  EXPECT_TRUE(gate_.EndDocument().empty());
  EXPECT_FALSE(gate_.TakeLoss(Lost(5)));
}

TEST_F(ExecutionGateTest, ReportsLossThatCouldHideFirstExecution) {
  gate_.SetBounds({10, 0});
  EXPECT_FALSE(Plain());
  EXPECT_FALSE(gate_.TakeLoss(Lost(5)));
  EXPECT_TRUE(gate_.EndDocument().empty());
  EXPECT_TRUE(Executes(12));
  EXPECT_FALSE(gate_.TakeLoss(Lost(2)));
  const std::vector<Loss> told = gate_.EndDocument();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].events, 7u);
  EXPECT_TRUE(gate_.EndDocument().empty());
}

TEST_F(ExecutionGateTest, AnEarlierExecutionShowsThatALossLayBefore) {
  gate_.SetBounds({10, 0});
  EXPECT_FALSE(gate_.TakeLoss(Lost(5)));
  EXPECT_FALSE(Executes(9));
  EXPECT_TRUE(Executes(10));
  EXPECT_FALSE(gate_.TakeLoss(Lost(2)));
  EXPECT_TRUE(gate_.EndDocument().empty());
}

TEST_F(ExecutionGateTest, AWorkerIsBehindItsLastOnlyWithAllCores) {
  const ExecutionBounds bounds{10, 11};
  ExecutionGate slow(true);
  gate_.SetBounds(bounds);
  slow.SetBounds(bounds);
  EXPECT_TRUE(Executes(10));
  EXPECT_FALSE(Executes(15));
  slow.Admit({"kbl_exec_pre", Phase::kInstant, {}, 11});
  ExecutionSummary before(bounds);
  before.Add(gate_);
  before.Add(slow);
  before.Add(ExecutionGate(true));  // a core that does nothing holds nobody up
  EXPECT_EQ(before.progress().first, 10u);
  EXPECT_EQ(before.progress().newest, 11u);
  slow.Admit({"kbl_exec_pre", Phase::kInstant, {}, 12});
  ExecutionSummary after(bounds);
  after.Add(gate_);
  after.Add(slow);
  EXPECT_EQ(after.progress().newest, 15u);
}

// What one core lacks must not be hidden by what another one has.
TEST_F(ExecutionGateTest, NoCoreIsHiddenBehindItsNeighbour) {
  const ExecutionBounds bounds{10, 20};
  ExecutionGate late(true);
  ExecutionGate jumped(true);
  for (ExecutionGate* const gate : {&gate_, &late, &jumped}) gate->SetBounds(bounds);
  EXPECT_TRUE(Executes(10));
  EXPECT_TRUE(Executes(15));
  EXPECT_TRUE(late.Admit({"kbl_exec_pre", Phase::kInstant, {}, 11}));
  EXPECT_FALSE(jumped.Admit({"kbl_exec_pre", Phase::kInstant, {}, 21}));
  ExecutionSummary summary(bounds);
  summary.Add(gate_);
  summary.Add(late);
  summary.Add(jumped);
  summary.Add(ExecutionGate(true));  // executes nothing
  EXPECT_EQ(summary.progress().first, 10u);
  EXPECT_EQ(summary.progress().highest_first, 11u);
  EXPECT_EQ(summary.progress().lowest_newest, 11u);
  EXPECT_EQ(summary.progress().cores_without, 1u);
}

// What an earlier run of the agent saw of a core is not known, and is not guessed.
TEST_F(ExecutionGateTest, ResumedCoreClaimsNoFirstExecution) {
  const ExecutionBounds bounds{10, 20};
  gate_.SetBounds(bounds);
  gate_.ResumeOpen();
  EXPECT_EQ(ProgressWith(bounds).lowest_newest, 0u);
  EXPECT_TRUE(Executes(15));
  EXPECT_EQ(ProgressWith(bounds).first, 15u);
  EXPECT_EQ(ProgressWith(bounds).highest_first, 0u);
  EXPECT_EQ(ProgressWith(bounds).lowest_newest, 15u);
  ExecutionGate unseen(true);
  unseen.ResumeOpen();
  ExecutionSummary summary(bounds);
  summary.Add(gate_);
  summary.Add(unseen);
  EXPECT_EQ(summary.progress().lowest_newest, 0u);
  EXPECT_EQ(summary.progress().newest, 15u);
  EXPECT_EQ(summary.progress().cores_without, 0u);
}

TEST(ExecutionNumber, IsReadFromNumbersAndText) {
  Shape shape{.event_type = "x",
              .keys = {{"exec_id", ValueType::kUint, KeyScope::kTop},
                       {"gid", ValueType::kUint, KeyScope::kData},
                       {"exec_id", ValueType::kString, KeyScope::kData}}};
  const AttributeValue values[] = {{1, ""}, {2, ""}, {0, "18446744073709551615"}};
  ASSERT_EQ(FindExecution(shape), 2);
  EXPECT_EQ(ReadExecution(shape, values, 2), UINT64_MAX);
  for (const char* text : {"", "x", "12 ", "-1", "18446744073709551616", "1.5"}) {
    const AttributeValue anomalous[] = {{1, ""}, {2, ""}, {0, text}};
    EXPECT_EQ(ReadExecution(shape, anomalous, 2), std::nullopt) << text;
  }
  shape.keys[2].type = ValueType::kDouble;
  EXPECT_EQ(FindExecution(shape), -1);
  EXPECT_EQ(ReadExecution(shape, values, -1), std::nullopt);
}

}  // namespace
}  // namespace neurontrace
