// SPDX-License-Identifier: Apache-2.0
#include "simulate/score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "simulate/answers.h"
#include "simulate/golden.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

FleetPlan PlanWith(std::vector<PlannedFault> faults) {
  FleetPlan plan;
  plan.dp = 4;
  plan.steps = 6;
  plan.faults = std::move(faults);
  return plan;
}

Score ScoreText(const Golden& golden, std::string_view text) {
  const auto answers = ParseAnswers(text);
  EXPECT_TRUE(answers.ok()) << answers.status();
  return ScoreAnswers(golden, *answers);
}

TEST(GoldenTest, MeasuresVictimsWaitsAndCosts) {
  const Golden golden = MeasuredGolden(PlanWith({{VerdictKind::kSlowCore, 1.0, 5}}));
  const GoldenFault& fault = golden.faults.at(0);
  EXPECT_THAT(fault.ranks, ElementsAre(5));
  EXPECT_EQ(fault.victims.size(), golden.ranks() - 1) << "everybody waits for it in the end";
  EXPECT_GT(fault.cost_ns, 100'000'000u);
  // What the run is longer by is waited for by each victim.
  EXPECT_GT(fault.wait_ns, fault.victims.size() * fault.cost_ns);
}

TEST(GoldenTest, AFaultWithoutEffectHasNoVictims) {
  const Golden golden = MeasuredGolden(PlanWith({{VerdictKind::kSlowCore, 0, 5}}));
  EXPECT_THAT(golden.faults.at(0).victims, IsEmpty());
  EXPECT_EQ(golden.faults.at(0).cost_ns, 0u);
}

TEST(GoldenTest, SurvivesItsJson) {
  FleetPlan plan =
      PlanWith({{VerdictKind::kSlowHost, 0.2, 0}, {VerdictKind::kDeadWorker, 0, 1, .5}});
  plan.holes = {{HoleKind::kLosses, {1, 2}, 0.5, 1}};
  plan.seed = UINT64_MAX;
  const Golden golden = MeasuredGolden(plan);
  const std::string json = GoldenToJson(golden);
  const auto read = ParseGolden(json);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(GoldenToJson(*read), json);
  EXPECT_EQ(read->seed, UINT64_MAX);
  EXPECT_EQ(read->faults.size(), 2u);
  EXPECT_THAT(read->holes.at(0).ranks, ElementsAre(1, 2));
}

TEST(GoldenTest, RefusesWhatIsNoGoldenFile) {
  EXPECT_FALSE(ParseGolden("").ok());
  EXPECT_FALSE(ParseGolden("[]").ok());
  EXPECT_FALSE(ParseGolden(R"({"version": 2})").ok());
  EXPECT_FALSE(ParseGolden(R"({"version": 1})").ok());
  std::string json = GoldenToJson(PlannedGolden(PlanWith({{VerdictKind::kSlowCore, 0.5, 5}})));
  ASSERT_TRUE(ParseGolden(json).ok());
  json.replace(json.find("slow-core"), 9, "slow-cord");
  EXPECT_FALSE(ParseGolden(json).ok());
}

TEST(ScoreTest, ExactIsKindRankAndPhase) {
  const Golden golden = PlannedGolden(PlanWith({{VerdictKind::kSlowCore, 0.5, 5}}));
  EXPECT_EQ(ScoreText(golden, "slow-core,5,device\n").exact, 1u);
  EXPECT_EQ(ScoreText(golden, "kind,rank,phase\nslow-core,5,\n").exact, 1u);
  EXPECT_EQ(ScoreText(golden, "slow-core,5,gap\n").inexact, 1u);
  EXPECT_EQ(ScoreText(golden, "host-code,5,gap\n").inexact, 1u);
  EXPECT_EQ(ScoreText(golden, "").missed, 1u);
  EXPECT_EQ(ScoreText(golden, "refused,5,losses\n").refused, 1u);
  EXPECT_EQ(ScoreText(golden, "refused,4,losses\n").missed, 1u);
}

TEST(ScoreTest, NamingAnInnocentRankIsWrong) {
  const Golden golden = PlannedGolden(PlanWith({{VerdictKind::kSlowCore, 0.5, 5}}));
  const Score score = ScoreText(golden, "slow-core,5,device\nslow-core,6,gap\n");
  EXPECT_EQ(score.exact, 1u);
  EXPECT_EQ(score.wrong, 1u);
  EXPECT_THAT(score.wrong_texts, Not(IsEmpty()));
  EXPECT_EQ(ScoreText(golden, "slow-core,5,device\nslow-core,6,device\n").wrong, 1u)
      << "an innocent beside the guilty";
  EXPECT_EQ(ScoreText(golden, "uneven-data,,\n").wrong, 1u);
  EXPECT_EQ(ScoreText(PlannedGolden(PlanWith({})), "slow-core,5,device\n").wrong, 1u);
}

TEST(ScoreTest, TwoFaultsMayBeOneAnswer) {
  const Golden golden =
      PlannedGolden(PlanWith({{VerdictKind::kSlowCore, 0.5, 5}, {VerdictKind::kSlowCore, 0.5, 9}}));
  EXPECT_EQ(ScoreText(golden, "slow-core,5,device\nslow-core,9,device\n").exact, 2u);
  const Score one = ScoreText(golden, "slow-core,9,device\n");
  EXPECT_EQ(one.exact, 1u);
  EXPECT_EQ(one.missed, 1u);
  EXPECT_EQ(one.wrong, 0u);
}

TEST(ScoreTest, MostCoresOfAProcessIdentifyIt) {
  const Golden golden = PlannedGolden(PlanWith({{VerdictKind::kSlowProcess, 0.5, 2}}));
  EXPECT_EQ(ScoreText(golden, "slow-process,8,\nslow-process,9,\nslow-process,11,\n").exact, 1u);
  EXPECT_EQ(ScoreText(golden, "slow-process,8,\nslow-process,9,\n").inexact, 1u);
}

TEST(ScoreTest, RolesAndDataNeedNoRank) {
  const Golden data = PlannedGolden(PlanWith({{VerdictKind::kUnevenData, 0.5, 0}}));
  EXPECT_EQ(ScoreText(data, "uneven-data,,\n").exact, 1u);
  EXPECT_EQ(ScoreText(data, "uneven-data,3,\n").wrong, 1u);
  const Golden role = PlannedGolden(PlanWith({{VerdictKind::kUnevenRole, 0.5, 1}}));
  Answers answers;
  answers.answers = {{.kind = "uneven-role", .role = "simulated/stage1/forward.neff#1"}};
  EXPECT_EQ(ScoreAnswers(role, answers).exact, 1u);
  answers.answers[0].role = "simulated/stage0/forward.neff#1";
  EXPECT_EQ(ScoreAnswers(role, answers).exact, 0u);
  EXPECT_EQ(ScoreAnswers(role, answers).wrong, 1u);
}

TEST(AnswersTest, ReadsProtobufJson) {
  const Golden golden = PlannedGolden(PlanWith({{VerdictKind::kSlowCore, 0.5, 5}}));
  const Score score = ScoreText(golden, R"({"verdicts": [{"kind": "VERDICT_KIND_SLOW_CORE",
      "suspects": [{"worker_gid": "5", "nc_idx": 1}], "phase": "device"}],
      "refusals": [{"reason": "losses", "cores": [{"workerGid": "7"}]}], "newer": 1})");
  EXPECT_EQ(score.exact, 1u);
  EXPECT_EQ(score.refusals, 1u);
  EXPECT_EQ(score.wrong, 0u);
}

TEST(AnswersTest, RefusesWhatItCannotRead) {
  EXPECT_FALSE(ParseAnswers("{").ok());
  EXPECT_FALSE(ParseAnswers("slow-core,x,device").ok());
  EXPECT_FALSE(ParseAnswers("slow-core,5").ok());
  EXPECT_FALSE(ParseAnswers("slow-core,10000,device").ok());
  EXPECT_FALSE(ParseAnswers(R"({"verdicts": [{"suspects": [{"worker_gid": "-1"}]}]})").ok());
}

}  // namespace
}  // namespace neurontrace
