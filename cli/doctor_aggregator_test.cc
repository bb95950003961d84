// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_aggregator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/trace/agent_info.h"

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;

class DoctorAggregatorTest : public testing::Test {
 protected:
  DoctorAggregatorTest() {
    answer_.took_ns = 300'000;
    answer_.status.set_version("0.1.0");
    AddAgent("i-a", "0.1.0", kProtocolVersion);
  }
  void AddAgent(const std::string& instance, const std::string& version, uint32_t protocol) {
    v1::Agent& agent = *answer_.status.add_agents();
    agent.set_connected(true);
    agent.mutable_hello()->set_instance_id(instance);
    agent.mutable_hello()->set_host_name("host-" + instance);
    agent.mutable_hello()->set_agent_version(version);
    agent.mutable_hello()->set_protocol_version(protocol);
    answer_.status.set_agents_connected(answer_.status.agents_connected() + 1);
    answer_.status.set_agents_known(answer_.status.agents_known() + 1);
  }
  std::vector<Finding> Check() {
    return CheckAggregator("agg:9400", "0.1.0", "host-i-a", [this] { return answer_; });
  }
  AggregatorAnswer answer_;
};

TEST_F(DoctorAggregatorTest, OneThatAnswersIsGood) {
  const auto findings = Check();
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].severity, Severity::kGood);
  EXPECT_THAT(findings[0].what, HasSubstr("agg:9400 answers in"));
  EXPECT_EQ(findings[1].severity, Severity::kGood);
  EXPECT_THAT(findings[1].what, HasSubstr("1 of 1 connected; this machine's is among them"));
}

TEST_F(DoctorAggregatorTest, OneThatDoesNotAnswerIsBroken) {
  answer_.error = "connection refused";
  ASSERT_EQ(Check().size(), 1u);
  EXPECT_EQ(Check()[0].severity, Severity::kBroken);
  EXPECT_THAT(Check()[0].what, HasSubstr("no answer from agg:9400: connection refused"));
}

TEST_F(DoctorAggregatorTest, OtherReleasesAndSlowAnswersAreWarnings) {
  answer_.took_ns = 2'000'000'000;
  EXPECT_EQ(Check()[0].severity, Severity::kWarning);
  answer_.status.set_version("0.2.0");
  EXPECT_THAT(Check()[0].what, HasSubstr("version 0.2.0, but this command is 0.1.0"));
}

TEST_F(DoctorAggregatorTest, ReportsInconsistentAgents) {
  AddAgent("i-b", "0.0.9", kProtocolVersion);
  EXPECT_THAT(Check()[1].what, HasSubstr("not 0.1.0: i-b (0.0.9)"));
  AddAgent("i-c", "0.0.8", kProtocolVersion - 1);
  EXPECT_EQ(Check()[1].severity, Severity::kWarning);
  EXPECT_THAT(Check()[1].what, HasSubstr("older protocol: i-c"));
}

TEST_F(DoctorAggregatorTest, AgentsThatAreAwayOrNone) {
  answer_.status.set_agents_known(3);
  EXPECT_EQ(Check()[1].severity, Severity::kWarning);
  EXPECT_THAT(Check()[1].what, HasSubstr("1 of 3 connected"));
  answer_.status.Clear();
  answer_.status.set_version("0.1.0");
  EXPECT_THAT(Check()[1].what, HasSubstr("no agent is connected"));
}

TEST_F(DoctorAggregatorTest, ReportsLocalRuntimeVersions) {
  const auto add = [this](const char* version, v1::WorkerState state) {
    v1::WorkerInventory& worker = *answer_.workers.add_workers();
    worker.set_runtime_version(version);
    worker.set_state(state);
  };
  add("", v1::WORKER_STATE_NOT_INITIALISED);
  ASSERT_EQ(Check().size(), 2u);
  add("2.31.24.0", v1::WORKER_STATE_IDLE);
  add("2.31.24.0", v1::WORKER_STATE_STREAMING);
  ASSERT_EQ(Check().size(), 3u);
  EXPECT_EQ(Check()[2].severity, Severity::kGood);
  EXPECT_EQ(Check()[2].what, "2.31.24.0 in 2 workers");
  add("2.19.5.0", v1::WORKER_STATE_RUNTIME_TOO_OLD);
  EXPECT_EQ(Check()[2].severity, Severity::kBroken);
  EXPECT_EQ(Check()[2].what,
            "2.19.5.0 in 1 worker, 2.31.24.0 in 2 workers; 1 of them cannot be recorded: `runtime "
            "too old`");
}

TEST_F(DoctorAggregatorTest, StoreThatTakesNoDataIsBroken) {
  v1::StoreProblem& problem = *answer_.status.mutable_store_problem();
  problem.set_text("writing chunks: the disk is full (df)");
  problem.set_free_bytes(4'096);
  problem.set_lacks_room(true);
  ASSERT_EQ(Check().size(), 3u);
  EXPECT_EQ(Check()[2].severity, Severity::kBroken);
  EXPECT_THAT(Check()[2].what, HasSubstr("the disk is full (df); 4.0 KiB free on its disk"));
  EXPECT_THAT(Check()[2].fix, HasSubstr("captures delete"));
  problem.set_lacks_room(false);
  EXPECT_THAT(Check()[2].fix, HasSubstr("runbooks.md"));
}

TEST_F(DoctorAggregatorTest, FindsTheInstancesOfThisMachine) {
  AddAgent("i-b", "0.1.0", kProtocolVersion);
  EXPECT_THAT(InstancesOf(answer_.status, "host-i-b"), testing::ElementsAre("i-b"));
  EXPECT_THAT(InstancesOf(answer_.status, "host"), testing::IsEmpty());
}

TEST_F(DoctorAggregatorTest, PlainTextIsRefusedBeyondThisMachine) {
  for (const char* const here : {"127.0.0.1:9400", "localhost:9400", "[::1]:9400"}) {
    EXPECT_EQ(CheckTransport(here, {}).severity, Severity::kGood) << here;
  }
  for (const char* const there : {"10.0.0.5:9400", "aggregator.example:9400", "[fe80::1]:9400"}) {
    EXPECT_EQ(CheckTransport(there, {}).severity, Severity::kBroken) << there;
    EXPECT_EQ(CheckTransport(there, {.insecure = true}).severity, Severity::kWarning) << there;
  }
}

}  // namespace
}  // namespace neurontrace::cli
