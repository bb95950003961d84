// SPDX-License-Identifier: Apache-2.0
// The agent and its disk end at every moment there is: in each operation that changes something on
// the disk, the power goes off once. Afterwards everything that was said to be kept is there, and
// every event is stored once or counted as lost.
#include <gtest/gtest.h>

#include <string>

#include "agent/upload/fake_node.h"

namespace neurontrace {
namespace {

// Begins the agent; where its disk dies of that, once more.
void Begin(FakeNode& node) {
  if (!node.Begin()) {
    ASSERT_TRUE(node.disk.powered_off());
    node.Kill();
    node.disk.Crash();
    ASSERT_TRUE(node.Begin());
  }
  node.Welcome();
}

// Lets the agent die if its disk did, and begins it again.
void RestartIfDead(FakeNode& node) {
  if (!node.disk.powered_off()) return;
  node.Kill();
  node.disk.Crash();
  node.NewProcess();
  Begin(node);
  node.Run();
}

void Step(FakeNode& node, uint64_t stored_by_aggregator) {
  node.aggregator.budget = stored_by_aggregator;
  for (int i = 0; i < 4; ++i) {
    node.Produce("a");
    node.Produce("b");
    node.Run(20'000'000);
  }
  node.Produce("c");
  node.Run();
  RestartIfDead(node);
}

// An agent's life: the aggregator away, back in part, away again; an orderly restart in between.
void Live(FakeNode& node) {
  Begin(node);
  Step(node, 0);
  Step(node, 5);
  node.Kill();
  node.NewProcess();
  Begin(node);
  Step(node, 7);
  Step(node, 0);
  node.Produce("a", true);
  node.Produce("b", true);
  node.Produce("c", true);
  node.Run();
  RestartIfDead(node);
  node.aggregator.budget = ~uint64_t{0};
  // As after a silence that was noticed: the call restarts.
  node.uploader->SetEnabled(false);
  node.Welcome();
  for (int i = 0; i < 10 && (node.queue->chunks() > 0 || node.disk.powered_off()); ++i) {
    node.Run();
    RestartIfDead(node);
  }
  EXPECT_EQ(node.queue->chunks(), 0u);
}

struct Setting {
  const char* name;
  uint64_t bytes_max;
  size_t columns_bytes;
  bool loses;
};

class EveryCrash : public ::testing::TestWithParam<Setting> {
 protected:
  static void Prepare(FakeNode& node) {
    node.options.bytes_max = node.options.capture_bytes_max = GetParam().bytes_max;
    node.columns_bytes = GetParam().columns_bytes;
  }
};

TEST_P(EveryCrash, ReportsEveryLoss) {
  uint64_t operations = 0;
  {
    FakeNode node;
    Prepare(node);
    Live(node);
    node.ExpectConservation("without a crash");
    EXPECT_EQ(node.LostEvents() > 0, GetParam().loses);
    operations = node.disk.changes();
  }
  ASSERT_GT(operations, 50u);
  for (uint64_t at = 1; at <= operations; ++at) {
    FakeNode node(at);
    Prepare(node);
    // Not before there is a directory at all: an agent that cannot make it has no spool.
    ASSERT_TRUE(node.disk.MakeDirectory(FakeNode::kRoot).ok());
    ASSERT_TRUE(node.disk.SyncDirectory("/var").ok());
    node.disk.PowerOffAt(at);
    Live(node);
    const std::string when = "crash in operation " + std::to_string(at);
    node.ExpectConservation(when);
    if (!GetParam().loses) {
      EXPECT_EQ(node.LostEvents(), 0u) << when;
    }
    if (HasFailure()) FAIL() << when;
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, EveryCrash,
                         ::testing::Values(Setting{"Roomy", 64u << 20, 3'000, false},
                                           Setting{"SmallSegments", 4u << 20, 40'000, false},
                                           Setting{"DropsOldest", 400'000, 40'000, true}),
                         [](const auto& setting) { return setting.param.name; });

}  // namespace
}  // namespace neurontrace
