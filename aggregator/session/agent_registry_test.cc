// SPDX-License-Identifier: Apache-2.0
// Who may connect, and what is known of whom.
#include "aggregator/session/agent_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

AgentInfo AgentOf(const std::string& id, uint32_t protocol_version = kProtocolVersion) {
  return {.protocol_version = protocol_version, .agent_id = id, .instance_id = "i-" + id};
}

WorkerInfo Worker(const std::string& instance_id, uint32_t pid) {
  return {.identity = {.instance_id = instance_id, .pid = pid}};
}

TEST(AgentRegistry, AcceptsTheOldestProtocolVersionToOneNewer) {
  AgentRegistry registry;
  EXPECT_TRUE(registry.Connect(AgentOf("oldest", kProtocolVersionOldest), 1, 10).ok());
  EXPECT_TRUE(registry.Connect(AgentOf("same"), 2, 10).ok());
  EXPECT_TRUE(registry.Connect(AgentOf("newer", kProtocolVersion + 1), 3, 10).ok());
  const absl::Status older = registry.Connect(AgentOf("older", kProtocolVersionOldest - 1), 4, 10);
  EXPECT_THAT(std::string(older.message()), HasSubstr("update the agent"));
  const absl::Status status = registry.Connect(AgentOf("far", kProtocolVersion + 2), 4, 10);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("update the aggregator"));
  EXPECT_EQ(registry.connected(), 3u);
}

TEST(AgentRegistry, RefusesAHelloWithoutIds) {
  AgentRegistry registry;
  EXPECT_EQ(registry.Connect(AgentOf(""), 1, 10).code(), absl::StatusCode::kInvalidArgument);
  AgentInfo info = AgentOf("a");
  info.instance_id.clear();
  EXPECT_EQ(registry.Connect(info, 1, 10).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(registry.connected(), 0u);
}

TEST(AgentRegistry, ANewConnectionSupersedesTheOldOne) {
  AgentRegistry registry;
  ASSERT_TRUE(registry.Connect(AgentOf("a"), 1, 10).ok());
  ASSERT_TRUE(registry.PutWorker("a", Worker("i-a", 7)).ok());
  ASSERT_TRUE(registry.Connect(AgentOf("a"), 2, 20).ok());
  EXPECT_EQ(registry.connected(), 1u);
  EXPECT_EQ(registry.workers(), 0u);  // until reported again
  EXPECT_FALSE(registry.IsCurrent("a", 1));
  EXPECT_FALSE(registry.Disconnect("a", 1, 30));  // the old one's end changes nothing
  EXPECT_TRUE(registry.IsCurrent("a", 2));
  EXPECT_TRUE(registry.Disconnect("a", 2, 40));
  EXPECT_EQ(registry.connected(), 0u);
  EXPECT_EQ(registry.Find("a")->first_seen_realtime_ns, 10u);
  EXPECT_EQ(registry.Find("a")->last_seen_realtime_ns, 40u);
}

TEST(AgentRegistry, ReportsLongDisconnectedAgents) {
  AgentRegistry registry;
  ASSERT_TRUE(registry.Connect(AgentOf("a"), 1, 10).ok());
  EXPECT_FALSE(IsAwayFor(registry.Find("a"), 100, 5'000)) << "the agent is connected";
  ASSERT_TRUE(registry.Disconnect("a", 1, 5'000));
  EXPECT_FALSE(IsAwayFor(registry.Find("a"), 100, 5'100));
  EXPECT_TRUE(IsAwayFor(registry.Find("a"), 100, 5'101));
  ASSERT_TRUE(registry.Connect(AgentOf("a"), 2, 6'000).ok());
  EXPECT_FALSE(IsAwayFor(registry.Find("a"), 100, 6'000));
  EXPECT_TRUE(IsAwayFor(registry.Find("b"), 100, 6'000)) << "the agent is unknown";
}

TEST(AgentRegistry, BoundsTheWorkersOfAnAgentAndChecksTheirInstance) {
  AgentRegistry registry;
  ASSERT_TRUE(registry.Connect(AgentOf("a"), 1, 10).ok());
  EXPECT_EQ(registry.PutWorker("a", Worker("i-other", 1)).code(),
            absl::StatusCode::kInvalidArgument);
  for (uint32_t pid = 0; pid < limits::kWorkersPerAgentMax; ++pid) {
    ASSERT_TRUE(registry.PutWorker("a", Worker("i-a", pid)).ok());
  }
  EXPECT_EQ(registry.PutWorker("a", Worker("i-a", 999'999)).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(registry.PutWorker("a", Worker("i-a", 5)).ok());  // known: an update
  registry.RemoveWorker("a", Worker("i-a", 5).identity);
  EXPECT_TRUE(registry.PutWorker("a", Worker("i-a", 999'999)).ok());
}

TEST(AgentRegistry, ForgetsLongestDisconnectedBeyondLimit) {
  AgentRegistry registry;
  for (uint32_t i = 0; i < limits::kAgentsMax; ++i) {
    registry.Restore(AgentOf(std::to_string(i)), 1, 1'000 + i);
  }
  ASSERT_TRUE(registry.Connect(AgentOf("0"), 1, 9'999).ok());
  ASSERT_TRUE(registry.Connect(AgentOf("new"), 2, 10'000).ok());
  EXPECT_EQ(registry.agents().size(), limits::kAgentsMax);
  EXPECT_NE(registry.Find("0"), nullptr);
  EXPECT_EQ(registry.Find("1"), nullptr);
}

}  // namespace
}  // namespace neurontrace
