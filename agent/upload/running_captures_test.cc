// SPDX-License-Identifier: Apache-2.0
// Captures that continue when an agent starts and cannot ask the aggregator: from cursors that are
// exact, or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "agent/spool/spool_disk.h"
#include "agent/upload/fake_node.h"
#include "lib/base/time_units.h"
#include "lib/trace/stream_cursor.h"

namespace neurontrace {
namespace {

using Operation = FakeFileSystem::Operation;

class RunningCapturesTest : public ::testing::Test {
 protected:
  RunningCapturesTest() { Prepare(node_); }
  static void Prepare(FakeNode& node) {
    node.options.boot_id = "boot";
    // Made beforehand: an agent that cannot make its directory has no spool.
    node.disk.SetContents(std::string(FakeNode::kRoot) + "/lock", "");
  }
  void Begin() {
    ASSERT_TRUE(node_.Begin());
    node_.Welcome();
  }
  void Kill() {
    node_.Kill();
    node_.NewProcess();
    node_.disk.SetCrashLosesNothing(true);
    node_.disk.Crash();
    node_.disk.SetCrashLosesNothing(false);
  }
  void Produce(int chunks) {
    for (int i = 0; i < chunks; ++i) {
      node_.Produce("a");
      node_.Produce("b");
      node_.Run(50'000'000);
    }
  }
  void Deliver() {
    node_.aggregator.budget = ~uint64_t{0};
    node_.uploader->SetEnabled(false);
    node_.Welcome();
    node_.Run(10 * kNsPerSecond);
    EXPECT_EQ(node_.queue->chunks(), 0u);
    node_.ExpectConservation("at the end");
    EXPECT_EQ(node_.LostEvents(), 0u);
  }
  bool HasRunningFile() const {
    return node_.disk.Contents(RunningFileOf(FakeNode::kRoot)).has_value();
  }

  FakeNode node_;
};

TEST_F(RunningCapturesTest, ResumesWithoutAggregator) {
  node_.aggregator.budget = 5;
  Begin();
  Produce(6);
  for (int restart = 0; restart < 4; ++restart) {
    Kill();
    ASSERT_TRUE(node_.Begin());
    ASSERT_TRUE(node_.ResumeOffline());
    Produce(3);
    EXPECT_EQ(node_.sources["a"].kept_by_source.size(), 0u) << "released while nobody is there";
  }
  Deliver();
}

TEST_F(RunningCapturesTest, ResumesWithEmptySpool) {
  node_.columns_bytes = 40'000;
  node_.options.capture_bytes_max = 1u << 20;
  Begin();
  Produce(12);
  node_.Run();
  ASSERT_EQ(node_.queue->chunks(), 0u);
  Kill();
  ASSERT_TRUE(node_.Begin());
  ASSERT_EQ(node_.queue->counters().chunks_recovered, 0u);
  ASSERT_TRUE(node_.ResumeOffline());
  Produce(2);
  Deliver();
}

TEST_F(RunningCapturesTest, KnowsTheStreamsThatHaveEnded) {
  Begin();
  Produce(2);
  node_.Produce("a", true);
  node_.Run();
  Kill();
  ASSERT_TRUE(node_.Begin());
  for (const DeliveryQueue::Resumed& capture : node_.queue->HandleRunning()) {
    EXPECT_EQ(capture.spec.name, "running");
    ASSERT_EQ(capture.cursors.size(), 2u);
    for (const StreamCursor& cursor : capture.cursors) {
      EXPECT_EQ(cursor.ended, cursor.stream.name == "a");
    }
  }
}

TEST_F(RunningCapturesTest, KnowsCursorsOfEmptySpool) {
  Begin();
  Produce(4);
  node_.Run();
  Kill();
  for (const std::string& path : node_.disk.Paths()) ASSERT_TRUE(node_.disk.Remove(path).ok());
  ASSERT_TRUE(node_.Begin());
  EXPECT_FALSE(node_.ResumeOffline());
  node_.Welcome();
  node_.Run();
  Kill();
  ASSERT_TRUE(node_.Begin());
  ASSERT_TRUE(node_.ResumeOffline());
  Produce(2);
  Deliver();
}

TEST_F(RunningCapturesTest, DoesNotResumeAfterAnotherBootOrWhenTheCaptureIsOver) {
  Begin();
  Produce(2);
  node_.Run();
  EXPECT_TRUE(HasRunningFile());
  Kill();
  node_.options.boot_id = "another boot";
  ASSERT_TRUE(node_.Begin());
  EXPECT_FALSE(node_.ResumeOffline());
  EXPECT_FALSE(HasRunningFile());
  node_.Welcome();
  node_.Run();
  EXPECT_TRUE(HasRunningFile());
  node_.uploader->ForgetCapture(node_.capture);
  node_.Run();
  EXPECT_FALSE(HasRunningFile());
}

TEST_F(RunningCapturesTest, DoesNotResumeFromDamage) {
  const std::string directory = std::string(FakeNode::kRoot) + "/" + node_.capture.ToString();
  node_.aggregator.budget = 0;
  Begin();
  Produce(4);
  node_.Run();
  Kill();
  for (const std::string& path :
       {RunningFileOf(FakeNode::kRoot), directory + "/cursor", directory + "/" + SegmentName(1)}) {
    const std::string good = *node_.disk.Contents(path);
    ASSERT_TRUE(node_.disk.FlipBit(path, path.ends_with(".seg") ? 700 : 100)) << path;
    FakeNode& node = node_;
    ASSERT_TRUE(node.Begin());
    EXPECT_FALSE(node.ResumeOffline()) << path;
    Kill();
    node_.disk.SetContents(path, good);
  }
}

// Nothing that is not in the spool is sent while the spool says that it knows all.
TEST_F(RunningCapturesTest, WritesNoStateWhileDiskFails) {
  Begin();
  Produce(2);
  node_.Run();
  ASSERT_TRUE(HasRunningFile());
  bool sent_too_early = false;
  node_.aggregator.refuses = [&](const ChunkHeader&) {
    sent_too_early = sent_too_early || (HasRunningFile() && node_.queue->unspooled_chunks() > 0);
    return false;
  };
  for (const Operation operation : {Operation::kAppend, Operation::kSync, Operation::kCreate}) {
    node_.disk.Fail(operation, absl::UnavailableError("input/output error"));
    const uint64_t received = node_.aggregator.received;
    Produce(5);
    EXPECT_FALSE(sent_too_early);
    if (operation != Operation::kCreate) {
      EXPECT_GT(node_.aggregator.received, received) << "from memory";
      EXPECT_FALSE(HasRunningFile());
    }
    Kill();
    node_.disk.Heal();
    ASSERT_TRUE(node_.Begin());
    if (operation != Operation::kCreate) {
      EXPECT_FALSE(node_.ResumeOffline());
    }
    node_.Welcome();
    node_.Run(40 * kNsPerSecond);
    EXPECT_TRUE(HasRunningFile());
  }
  Kill();
  ASSERT_TRUE(node_.Begin());
  ASSERT_TRUE(node_.ResumeOffline());
  Produce(2);
  Deliver();
}

TEST_F(RunningCapturesTest, WritesStateOnceDiskRecovers) {
  Begin();
  Produce(2);
  node_.disk.SetCapacity(node_.disk.bytes());
  Produce(5);
  EXPECT_FALSE(HasRunningFile());
  node_.disk.SetCapacity(~uint64_t{0});
  node_.Run(40 * kNsPerSecond);
  EXPECT_TRUE(HasRunningFile());
  Kill();
  ASSERT_TRUE(node_.Begin());
  ASSERT_TRUE(node_.ResumeOffline());
  Produce(2);
  Deliver();
}

// A disk that was put back to an older state, as by a snapshot: seen before anything is sent.
TEST_F(RunningCapturesTest, ReportsOutdatedStateAsUnknown) {
  Begin();
  Produce(2);
  node_.Run();
  std::map<std::string, std::string> old;
  for (const std::string& path : node_.disk.Paths()) old[path] = *node_.disk.Contents(path);
  Produce(3);
  node_.Run();
  Kill();
  for (const auto& [path, contents] : old) node_.disk.SetContents(path, contents);
  ASSERT_TRUE(node_.Begin());
  ASSERT_EQ(node_.queue->HandleRunning().size(), 1u);
  std::vector<StreamCursor> cursors = node_.aggregator.Cursors();
  ASSERT_TRUE(node_.queue->WasWrong(node_.capture, cursors));
  node_.uploader->ForgetCapture(node_.capture);
  node_.queue->MergeCursors(node_.capture, cursors);
  for (const StreamCursor& cursor : cursors) {
    EXPECT_EQ(cursor.next_sequence, 6u);
    ASSERT_EQ(cursor.losses_before.size(), 1u);
    EXPECT_TRUE(cursor.losses_before[0].events_unknown);
  }
  EXPECT_FALSE(node_.queue->WasWrong(node_.capture, cursors)) << "once";
}

// --- The power goes off in each operation --------------------------------------------------------

// The machine comes back with the same boot id, which is harder than what really happens.
void Revive(FakeNode& node, bool asks) {
  if (!node.disk.powered_off()) return;
  for (;;) {
    node.Kill();
    node.disk.Crash();
    node.NewProcess();
    if (node.Begin()) break;
    ASSERT_TRUE(node.disk.powered_off());
  }
  const bool will_continue = node.ResumeOffline();
  if (asks || !will_continue) node.Welcome();
  node.Run();
}

void LiveOn(FakeNode& node) {
  // A machine without power sends nothing either.
  node.aggregator.is_cut_off = [&node] { return node.disk.powered_off(); };
  if (!node.Begin()) Revive(node, true);
  node.Welcome();
  for (const uint64_t budget : {6, 0, 9}) {
    node.aggregator.budget = budget;
    for (int i = 0; i < 4; ++i) {
      node.Produce("a");
      node.Produce("b");
      node.Run(100'000'000);
      Revive(node, false);
    }
    node.Run();
    Revive(node, false);
    // An orderly restart, with nobody there.
    node.Kill();
    node.NewProcess();
    if (node.Begin()) {
      if (!node.ResumeOffline()) node.Welcome();
    } else {
      Revive(node, false);
    }
    node.Produce("a");
    node.Produce("c");
    node.Run();
    Revive(node, false);
  }
  node.Produce("a", true);
  node.Produce("b", true);
  node.Produce("c", true);
  node.Run();
  Revive(node, true);
  node.aggregator.budget = ~uint64_t{0};
  node.uploader->SetEnabled(false);
  node.Welcome();
  for (int i = 0; i < 10 && (node.queue->chunks() > 0 || node.disk.powered_off()); ++i) {
    node.Run();
    Revive(node, true);
  }
  EXPECT_EQ(node.queue->chunks(), 0u);
}

TEST_F(RunningCapturesTest, NoCrashMakesItResumeWrongly) {
  node_.columns_bytes = 40'000;
  node_.options.capture_bytes_max = 4u << 20;
  LiveOn(node_);
  node_.ExpectConservation("without a crash");
  const uint64_t operations = node_.disk.changes();
  ASSERT_GT(operations, 80u);
  for (uint64_t at = 1; at <= operations; ++at) {
    FakeNode node(at);
    Prepare(node);
    node.columns_bytes = 40'000;
    node.options.capture_bytes_max = 4u << 20;
    node.disk.PowerOffAt(at);
    LiveOn(node);
    const std::string when = "crash in operation " + std::to_string(at);
    node.ExpectConservation(when);
    EXPECT_EQ(node.LostEvents(), 0u) << when;
    if (HasFailure()) FAIL() << when;
  }
}

}  // namespace
}  // namespace neurontrace
