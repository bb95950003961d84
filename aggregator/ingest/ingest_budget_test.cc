// SPDX-License-Identifier: Apache-2.0
// Who may be read from while room is short.
#include "aggregator/ingest/ingest_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr size_t kMessage = limits::kChunkBytesTarget;

// Counts who continued, in order.
struct Log {
  std::vector<std::string> names;
  std::function<void()> Entry(const std::string& name) {
    return [this, name] { names.push_back(name); };
  }
};

TEST(IngestBudget, LimitsOneAgentToHalf) {
  IngestBudget budget(100 * kMessage);
  Log log;
  budget.Take("loud", 50 * kMessage);
  budget.WhenRoom("loud", log.Entry("loud"));
  EXPECT_THAT(log.names, IsEmpty());
  budget.WhenRoom("quiet", log.Entry("quiet"));
  EXPECT_THAT(log.names, ElementsAre("quiet"));
  budget.Take("quiet", kMessage);
  // Now there are two, and a third that may come: a third of it each.
  budget.Release("loud", 10 * kMessage);
  EXPECT_THAT(log.names, ElementsAre("quiet"));
  budget.Release("loud", 7 * kMessage);
  EXPECT_THAT(log.names, ElementsAre("quiet", "loud"));
}

TEST(IngestBudget, ServesWaitersInTurn) {
  IngestBudget budget(40 * kMessage);
  Log log;
  budget.Take("a", 20 * kMessage);
  budget.Take("b", 20 * kMessage);
  for (int i = 0; i < 3; ++i) budget.WhenRoom("a", log.Entry("a"));
  for (int i = 0; i < 3; ++i) budget.WhenRoom("b", log.Entry("b"));
  budget.WhenRoom("c", log.Entry("c"));
  EXPECT_THAT(log.names, IsEmpty());
  budget.Release("a", 18 * kMessage);
  budget.Release("b", 18 * kMessage);
  EXPECT_THAT(log.names, ElementsAre("a", "c", "a", "a", "b", "b", "b"));
}

TEST(IngestBudget, AdmitsOnlyWithinBudget) {
  IngestBudget budget(10 * kMessage);
  Log log;
  budget.Take("a", 10 * kMessage);
  for (int i = 0; i < 100; ++i) budget.WhenRoom("b" + std::to_string(i), log.Entry("b"));
  EXPECT_THAT(log.names, IsEmpty());
  budget.Release("a", 3 * kMessage);
  EXPECT_EQ(log.names.size(), 3u);
  budget.Release("a", 6 * kMessage);
  EXPECT_EQ(log.names.size(), 12u);
}

// The first ones to continue have nothing more to send, or are gone: nobody would let the others
// continue.
TEST(IngestBudget, NobodyWaitsWhenEmpty) {
  IngestBudget budget(kMessage);
  Log log;
  budget.Take("a", kMessage);
  for (const char* agent : {"a", "a", "b", "c", "c"}) budget.WhenRoom(agent, log.Entry(agent));
  EXPECT_THAT(log.names, IsEmpty());
  budget.Release("a", kMessage);
  EXPECT_THAT(log.names, ElementsAre("a", "b", "c", "a", "c"));
  budget.WhenRoom("d", log.Entry("d"));
  EXPECT_EQ(log.names.size(), 6u);
}

// While a commit is slow, and not only after it.
TEST(IngestBudget, ReportsUsageAndWaiters) {
  prometheus::Registry registry;
  IngestMetrics metrics(registry);
  IngestBudget budget(100 * kMessage, &metrics);
  Log log;
  budget.Take("a", 50 * kMessage);
  EXPECT_EQ(metrics.bytes_in_flight.Value(), 50.0 * kMessage);
  EXPECT_EQ(metrics.calls_waiting.Value(), 0);
  for (int i = 0; i < 3; ++i) budget.WhenRoom("a", log.Entry("a"));
  budget.WhenRoom("b", log.Entry("b"));
  EXPECT_THAT(log.names, ElementsAre("b"));
  EXPECT_EQ(metrics.calls_waiting.Value(), 3);
  budget.Release("a", 2 * kMessage);
  EXPECT_EQ(metrics.bytes_in_flight.Value(), 48.0 * kMessage);
  EXPECT_EQ(metrics.calls_waiting.Value(), 4.0 - static_cast<double>(log.names.size()));
  budget.Release("a", 48 * kMessage);
  EXPECT_EQ(metrics.bytes_in_flight.Value(), 0);
  EXPECT_EQ(metrics.calls_waiting.Value(), 0);
}

// A loud agent with many calls beside quiet ones: what is in flight stays within the budget, and a
// quiet one never waits for more than a round.
TEST(IngestBudget, UnderOverloadEverybodyMovesAndMemoryHolds) {
  constexpr size_t kBudget = 64 * kMessage;
  IngestBudget budget(kBudget);
  std::map<std::string, int> read;
  std::deque<std::string> at_writer;
  size_t most = 0;
  const std::function<void(const std::string&)> ask = [&](const std::string& agent) {
    budget.WhenRoom(agent, [&, agent] {
      ++read[agent];
      budget.Take(agent, kMessage);
      at_writer.push_back(agent);
      most = std::max(most, budget.bytes());
    });
  };
  for (int i = 0; i < 1'000; ++i) ask("loud");
  for (int round = 0; round < 200; ++round) {
    ask("quiet 1");
    ask("quiet 2");
    for (int i = 0; i < 8 && !at_writer.empty(); ++i) {
      const std::string agent = at_writer.front();
      at_writer.pop_front();
      if (agent == "loud") ask(agent);
      budget.Release(agent, kMessage);
    }
  }
  EXPECT_LE(most, kBudget);
  EXPECT_GE(read["quiet 1"], 190);
  EXPECT_GE(read["quiet 2"], 190);
  EXPECT_GE(read["loud"], 1'000);
}

TEST(IngestBudget, BudgetBelowMessageSizeAdmitsOne) {
  IngestBudget budget(100);
  Log log;
  budget.Take("a", 1'000);
  budget.WhenRoom("a", log.Entry("a"));
  budget.WhenRoom("b", log.Entry("b"));
  EXPECT_THAT(log.names, IsEmpty());
  budget.Release("a", 1'000);
  EXPECT_FALSE(log.names.empty());
}

}  // namespace
}  // namespace neurontrace
