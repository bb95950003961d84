// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/insight/insight_engine.h"
#include "aggregator/insight/lock_step_fleet.h"
#include "aggregator/insight/verdict_text.h"

namespace neurontrace {

// For tests: the rule on a fleet in lock step whose every duration is known.
class InsightEngineTest : public ::testing::Test {
 protected:
  explicit InsightEngineTest(uint32_t cores = 16) : fleet_(cores, 4), conditions_(cores) {}

  // Feeds one core after the other.
  void Run(uint32_t executions = 40) {
    if (!engine_) engine_.emplace(fleet_.cores);
    for (const auto& events : fleet_.Run(executions)) engine_->Take(events);
  }
  InsightReport Judge() { return engine_->Judge(conditions_); }
  InsightReport RunAndJudge(uint32_t executions = 40) {
    Run(executions);
    return Judge();
  }
  // One core's device takes `factor` times as long, from an execution on.
  void SlowDevice(uint32_t slow, double factor, uint32_t since = 0) {
    fleet_.plan = [=](uint32_t core, uint32_t execution, FleetWork& work) {
      if (core == slow && execution >= since) work.device *= factor;
    };
  }
  void ExpectOnly(const InsightReport& report, VerdictKind kind, std::vector<uint32_t> suspects,
                  InsightPhase phase) {
    ASSERT_THAT(report.verdicts, ::testing::SizeIs(1)) << Texts(report);
    EXPECT_EQ(report.verdicts[0].kind, kind) << Texts(report);
    EXPECT_EQ(report.verdicts[0].suspects, suspects) << Texts(report);
    EXPECT_EQ(report.verdicts[0].phase, phase) << Texts(report);
    EXPECT_THAT(report.refusals, ::testing::IsEmpty()) << Texts(report);
  }
  void ExpectRefused(const InsightReport& report, RefusalReason reason,
                     std::vector<uint32_t> cores) {
    EXPECT_THAT(report.verdicts, ::testing::IsEmpty()) << Texts(report);
    ASSERT_THAT(report.refusals, ::testing::SizeIs(1)) << Texts(report);
    EXPECT_EQ(report.refusals[0].reason, reason) << Texts(report);
    EXPECT_EQ(report.refusals[0].cores, cores) << Texts(report);
  }
  void ExpectNobody(const InsightReport& report) {
    EXPECT_THAT(report.verdicts, ::testing::IsEmpty()) << Texts(report);
    EXPECT_THAT(report.refusals, ::testing::IsEmpty()) << Texts(report);
  }
  std::string Texts(const InsightReport& report) const {
    std::string text = ReportText(report, engine_->cores()) + "\n";
    for (const Verdict& verdict : report.verdicts)
      text += VerdictText(verdict, engine_->cores()) + RuledOutText(verdict) + "\n";
    for (const Refusal& refusal : report.refusals)
      text += RefusalText(refusal, engine_->cores()) + "\n";
    return text;
  }
  std::vector<uint32_t> AllCores() const {
    std::vector<uint32_t> all(fleet_.cores.size());
    for (uint32_t core = 0; core < all.size(); ++core) all[core] = core;
    return all;
  }
  // The streams are alive for so long after their last events.
  void StayAlive(uint64_t ns) {
    for (uint32_t core = 0; core < conditions_.size(); ++core)
      conditions_[core].alive_at_ns = fleet_.end_ns(core) + ns;
  }

  LockStepFleet fleet_;
  std::vector<CoreCondition> conditions_;
  std::optional<InsightEngine> engine_;
};

}  // namespace neurontrace
