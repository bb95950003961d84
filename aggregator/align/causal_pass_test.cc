// SPDX-License-Identifier: Apache-2.0
// Small worlds by hand, each with one thing in it that the pass must find, must do or must not do.
#include "aggregator/align/causal_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "aggregator/align/causal_pair_bound.h"
#include "aggregator/align/causal_violation.h"
#include "aggregator/align/causal_world_test_support.h"
#include "base/time_units.h"

namespace neurontrace {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint64_t kPassBegin = 1'000'000'000'000;

CausalParameters In(CausalMode mode) {
  CausalParameters parameters;
  parameters.modes.fill(mode);
  return parameters;
}

CausalClock Clock(const std::string& name, uint64_t bound_ns, uint64_t likely_bound_ns) {
  CausalClock clock{.name = name, .knots = {}};
  for (uint64_t t = 0; t <= 20; t += 5) {
    clock.knots.push_back({.x_ns = 500 + t * kNsPerSecond,
                           .y_ns = kPassBegin + t * kNsPerSecond,
                           .bound_ns = bound_ns,
                           .likely_bound_ns = likely_bound_ns});
  }
  return clock;
}

// Times in ns behind kPassBegin + 5 s + sequence * 100 ms.
struct Message {
  CausalClass kind = CausalClass::kFlow;
  uint32_t from = 0;
  int64_t sent_ns = 0;
  uint32_t to = 1;
  int64_t received_ns = 0;
};

CausalInstances Of(const std::vector<Message>& messages) {
  CausalInstances instances;
  for (size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    const auto at = [i](int64_t ns) {
      return static_cast<uint64_t>(
          static_cast<int64_t>(kPassBegin + 5 * kNsPerSecond + i * kNsPerSecond / 10) + ns);
    };
    const CausalStamp cause{.reference_ns = at(message.sent_ns), .clock = message.from};
    const CausalStamp effect{.reference_ns = at(message.received_ns), .clock = message.to};
    EXPECT_TRUE(instances.Add({message.kind, 1, i}, {{cause}}, {{effect}}).ok());
  }
  return instances;
}

CausalResult Pass(const std::vector<CausalClock>& clocks, const CausalInstances& instances,
                  CausalMode mode) {
  auto result = RunCausalPass(clocks, instances, In(mode));
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

const std::vector<CausalClock> kTwo = {Clock("a", 30'000, 20'000), Clock("b", 30'000, 20'000)};

TEST(CausalPassTest, CheckingCountsAndMovesNothing) {
  const CausalInstances instances = Of({{.sent_ns = 5'000, .received_ns = 0},
                                        {.sent_ns = 0, .received_ns = 10},
                                        {.sent_ns = 70'000, .received_ns = 0}});
  const CausalResult result = Pass(kTwo, instances, CausalMode::kCheck);
  EXPECT_TRUE(result.corrections.empty());
  const CausalClassReport& report = result.report[CausalClass::kFlow];
  EXPECT_EQ(report.instances, 3u);
  EXPECT_EQ(report.violated_before, 2u);
  EXPECT_EQ(report.worst_before_ns, 70'000);
  EXPECT_EQ(report.beyond_bounds, 1u);
  EXPECT_EQ(report.violated_after, 2u);
  EXPECT_THAT(result.report.Words(),
              testing::ElementsAre("flow: 2 of 3 show an effect before its cause, by up to 70.000 "
                                   "us, 1 of them by more than the clocks' bounds explain; only "
                                   "checked"));
  ClockModel model{.algorithm_version = 1, .segments = {{.knots = kTwo[0].knots}}, .findings = {}};
  EXPECT_EQ(ApplyCorrections(model, result.corrections, 0), model);
}

TEST(CausalPassTest, WithoutAViolationNothingMoves) {
  const CausalInstances instances = Of({{.sent_ns = 0, .received_ns = 15'000},
                                        {.from = 1, .sent_ns = 0, .to = 0, .received_ns = 15'000}});
  const CausalResult result = Pass(kTwo, instances, CausalMode::kApply);
  EXPECT_EQ(result.report.largest_shift_ns, 0u);
}

TEST(CausalPassTest, SharesAViolationBetweenEquallyGoodClocks) {
  const CausalInstances instances = Of({{.sent_ns = 10'000, .received_ns = 0}});
  const CausalResult result = Pass(kTwo, instances, CausalMode::kApply);
  const CausalClassReport& report = result.report[CausalClass::kFlow];
  EXPECT_EQ(report.violated_before, 1u);
  EXPECT_EQ(report.violated_after, 0u);
  EXPECT_EQ(report.rejected, 0u);
  const uint64_t at = kPassBegin + 5 * kNsPerSecond;
  EXPECT_NEAR(result.corrections.ShiftAt(0, at), -5'000, 20);
  EXPECT_NEAR(result.corrections.ShiftAt(1, at), 5'000, 20);
  EXPECT_GE(result.corrections.Corrected(1, at), result.corrections.Corrected(0, at + 10'000));
}

TEST(CausalPassTest, MovesTheClockThatIsLessWellKnown) {
  const std::vector<CausalClock> clocks = {Clock("good", 500, 100), Clock("bad", 30'000, 20'000)};
  const CausalResult result =
      Pass(clocks, Of({{.sent_ns = 10'000, .received_ns = 0}}), CausalMode::kApply);
  const uint64_t at = kPassBegin + 5 * kNsPerSecond;
  EXPECT_LE(std::abs(result.corrections.ShiftAt(0, at)), 100);
  EXPECT_GE(result.corrections.ShiftAt(1, at), 9'900);
  EXPECT_EQ(result.report[CausalClass::kFlow].violated_after, 0u);
}

TEST(CausalPassTest, ReportsWhatContradictsBoundsWithItsCycle) {
  std::vector<Message> messages(100, {.sent_ns = 0, .received_ns = 20'000});
  messages[50] = {.sent_ns = 90'000, .received_ns = 0};
  const CausalResult result = Pass(kTwo, Of(messages), CausalMode::kApply);
  const CausalClassReport& report = result.report[CausalClass::kFlow];
  EXPECT_EQ(report.rejected, 1u);
  EXPECT_EQ(report.violated_after, 0u);
  ASSERT_THAT(result.report.findings, SizeIs(1));
  const CausalFinding& finding = result.report.findings[0];
  EXPECT_EQ(finding.instance, 50u);
  EXPECT_THAT(finding.words, HasSubstr("flow 1:50 is left out"));
  ASSERT_THAT(finding.cycle.steps, SizeIs(testing::Ge(3u)));
  int64_t sum = 0;
  for (size_t i = 0; i < finding.cycle.steps.size(); ++i) {
    const CausalStep& step = finding.cycle.steps[i];
    sum += step.weight_ns;
    EXPECT_EQ(step.to, finding.cycle.steps[(i + 1) % finding.cycle.steps.size()].from);
  }
  EXPECT_EQ(sum, -finding.cycle.amount_ns);
  EXPECT_LT(sum, 0);
  EXPECT_TRUE(result.rejected[50]);
  EXPECT_EQ(result.report.largest_shift_ns, 0u);
}

TEST(CausalPassTest, LeavesTheLeastTrustedOfACycleOut) {
  // Neither contradicts a bound; together they say that b is ahead of itself.
  const std::vector<CausalClock> clocks = {Clock("a", 90'000, 90'000), Clock("b", 90'000, 90'000)};
  std::vector<Message> messages(40,
                                {.kind = CausalClass::kRpc, .sent_ns = 0, .received_ns = 99'000});
  messages[3] = {.kind = CausalClass::kRpc, .sent_ns = 40'000, .received_ns = 0};
  messages[4] = {
      .kind = CausalClass::kFlow, .from = 1, .sent_ns = 0, .to = 0, .received_ns = 10'000};
  const CausalResult result = Pass(clocks, Of(messages), CausalMode::kApply);
  EXPECT_EQ(result.report[CausalClass::kFlow].rejected, 1u);
  EXPECT_EQ(result.report[CausalClass::kRpc].rejected, 0u);
  EXPECT_EQ(result.report[CausalClass::kRpc].violated_after, 0u);
  EXPECT_THAT(result.report.findings, SizeIs(1));
}

TEST(CausalPassTest, FindsACycleThatNoBoundIsPartOf) {
  std::vector<CausalClock> clocks;
  for (const char* name : {"a", "b", "c"}) clocks.push_back(Clock(name, 1ull << 40, 1ull << 40));
  const CausalResult result = Pass(clocks,
                                   Of({{.from = 0, .sent_ns = 10, .to = 1, .received_ns = 0},
                                       {.from = 1, .sent_ns = 10, .to = 2, .received_ns = 0},
                                       {.from = 2, .sent_ns = 10, .to = 0, .received_ns = 5}}),
                                   CausalMode::kApply);
  EXPECT_EQ(result.report[CausalClass::kFlow].rejected, 1u);
  EXPECT_EQ(result.report[CausalClass::kFlow].violated_after, 0u);
}

TEST(CausalPassTest, DistrustsAClassThatIsNotWhatItWasTakenFor) {
  std::vector<Message> messages;
  for (int i = 0; i < 60; ++i) {
    messages.push_back({.kind = CausalClass::kBroadcast, .sent_ns = 500'000, .received_ns = 0});
    messages.push_back({.kind = CausalClass::kFlow, .sent_ns = 8'000, .received_ns = 0});
  }
  const CausalResult result = Pass(kTwo, Of(messages), CausalMode::kApply);
  EXPECT_TRUE(result.report[CausalClass::kBroadcast].distrusted);
  EXPECT_EQ(result.report[CausalClass::kBroadcast].violated_after, 60u);
  EXPECT_EQ(result.report[CausalClass::kFlow].violated_after, 0u);
  EXPECT_FALSE(result.report[CausalClass::kFlow].distrusted);
  ASSERT_THAT(result.report.findings, SizeIs(1));
  EXPECT_THAT(result.report.findings[0].words, HasSubstr("broadcast constraints move nothing"));
}

TEST(CausalPassTest, OnlyClassesThatApplyMoveClocks) {
  CausalParameters parameters;
  parameters.modes[Index(CausalClass::kRpc)] = CausalMode::kApply;
  parameters.modes[Index(CausalClass::kReduce)] = CausalMode::kOff;
  const CausalInstances instances =
      Of({{.kind = CausalClass::kFlow, .sent_ns = 9'000, .received_ns = 0},
          {.kind = CausalClass::kRpc, .sent_ns = 4'000, .received_ns = 0},
          {.kind = CausalClass::kReduce, .sent_ns = 4'000, .received_ns = 0}});
  const auto result = RunCausalPass(kTwo, instances, parameters);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->report[CausalClass::kRpc].violated_after, 0u);
  EXPECT_EQ(result->report[CausalClass::kFlow].violated_after, 1u);
  EXPECT_NEAR(static_cast<double>(result->report[CausalClass::kFlow].worst_after_ns), 5'000, 50);
  EXPECT_EQ(result->report[CausalClass::kReduce].instances, 0u);
}

TEST(CausalPassTest, TheSameInputGivesTheSameResult) {
  const CausalWorld world({.seed = 3, .clocks = 12, .seconds = 8, .asymmetry_max_us = 50});
  const CausalResult once = Pass(world.Clocks(), world.Instances(), CausalMode::kApply);
  const CausalResult again = Pass(world.Clocks(), world.Instances(), CausalMode::kApply);
  EXPECT_TRUE(once.corrections == again.corrections);
  EXPECT_FALSE(once.corrections.empty());
  EXPECT_EQ(once.report.Words(), again.report.Words());
}

TEST(CausalPassTest, RefusesWhatMakesNoSense) {
  const CausalInstances instances = Of({{.sent_ns = 0, .received_ns = 10}});
  EXPECT_EQ(RunCausalPass({kTwo[0]}, instances, {}).status().message(),
            "causal pass: instance 0: there is no clock 1");
  EXPECT_EQ(
      RunCausalPass({kTwo[0], {.name = "empty", .knots = {}}}, instances, {}).status().message(),
      "causal pass: empty has no knot");
  CausalClock backwards = kTwo[0];
  std::swap(backwards.knots[1], backwards.knots[2]);
  EXPECT_EQ(RunCausalPass({backwards, kTwo[1]}, instances, {}).status().message(),
            "causal pass: a: knot 2 does not ascend, or is no time");
  EXPECT_EQ(RunCausalPass(kTwo, instances, {.epoch_ns = 0}).status().message(),
            "causal pass: an epoch of no length");
}

TEST(CausalPairBoundTest, IsAsWideAsTheFastestRoundTrip) {
  const CausalInstances instances = Of({{.sent_ns = 0, .received_ns = 7'000},
                                        {.from = 1, .sent_ns = 0, .to = 0, .received_ns = 9'000}});
  const CausalParameters parameters = In(CausalMode::kApply);
  const CausalResult result = Pass(kTwo, instances, CausalMode::kApply);
  const auto bounds = CausalPairBounds(kTwo, instances, parameters, result,
                                       {.clock = 0, .reference_ns = kPassBegin + 5 * kNsPerSecond});
  ASSERT_TRUE(bounds.ok()) << bounds.status();
  ASSERT_THAT(*bounds, SizeIs(2));
  EXPECT_EQ((*bounds)[0], CausalPairBound{});
  // And what the clocks may have drifted within the tenth of a second between the messages.
  EXPECT_LE((*bounds)[1].most_ns, 9'000 + 4'000);
  EXPECT_GE((*bounds)[1].most_ns, 9'000);
  EXPECT_LE((*bounds)[1].least_ns, -7'000);
  EXPECT_GE((*bounds)[1].least_ns, -7'000 - 4'000);
}

}  // namespace
}  // namespace neurontrace
