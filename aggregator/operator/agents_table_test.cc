// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/agents_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;

TEST(AgentsTable, ListsDisconnectedAgentsFirst) {
  AgentRegistry registry;
  uint64_t connection = 0;
  for (const char* const id : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(registry
                    .Connect({.protocol_version = kProtocolVersion,
                              .agent_id = id,
                              .instance_id = std::string("i-") + id},
                             ++connection, 10 * kNsPerSecond)
                    .ok());
  }
  ASSERT_TRUE(registry.Disconnect("b", 2, 20 * kNsPerSecond));
  ASSERT_TRUE(registry.Disconnect("d", 4, 30 * kNsPerSecond));
  const StatusTable table = AgentsTable(registry, 40 * kNsPerSecond);
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_THAT(table.rows[0], ElementsAre("i-d", "d", "", "no", "0", "10.0 s ago"));
  EXPECT_THAT(table.rows[1], ElementsAre("i-b", "b", "", "no", "0", "20.0 s ago"));
  EXPECT_THAT(table.rows[2], ElementsAre("i-a", "a", "", "yes", "0", "30.0 s ago"));
  EXPECT_EQ(table.rows[3][0], "i-c");
}

}  // namespace
}  // namespace neurontrace
