// SPDX-License-Identifier: Apache-2.0
// Disks that do not return what is asked of them when an agent starts: it asks again, and what they
// never return is reported as a loss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "agent/upload/fake_node.h"
#include "lib/trace/stream_cursor.h"

namespace neurontrace {
namespace {

using Operation = FakeFileSystem::Operation;

class SpoolReadingTest : public ::testing::Test {
 protected:
  // Twelve chunks in several segments, `stored` of them at the aggregator; then kill -9.
  void Prepare(uint64_t stored) {
    node_ = std::make_unique<FakeNode>();
    node_->columns_bytes = 40'000;
    node_->options.capture_bytes_max = 1u << 20;
    ASSERT_TRUE(node_->Begin());
    node_->aggregator.budget = stored;
    node_->Welcome();
    for (int i = 0; i < 6; ++i) {
      node_->Produce("a");
      node_->Produce("b");
      node_->Run(300'000'000);
    }
    ASSERT_GT(node_->spool->segments(), 2u);
    node_->Kill();
    node_->NewProcess();
    node_->disk.SetCrashLosesNothing(true);
    node_->disk.Crash();
  }
  void Deliver() {
    node_->aggregator.budget = ~uint64_t{0};
    node_->Welcome();
    node_->Run(10'000'000'000);
    EXPECT_EQ(node_->queue->chunks(), 0u);
  }

  std::unique_ptr<FakeNode> node_;
};

// Each of the reads and opens of a start fails once.
TEST_F(SpoolReadingTest, OneFailureAnywhereCostsOneMoreTry) {
  for (const Operation operation : {Operation::kRead, Operation::kOpen}) {
    for (uint64_t good = 0;; ++good) {
      Prepare(3);
      node_->disk.FailAfter(operation, absl::UnavailableError("input/output error"), good);
      const bool read = node_->Begin();
      if (read) {
        EXPECT_GT(good, 3u);
        break;
      }
      EXPECT_TRUE(node_->spool->CanHoldChunks());
      ASSERT_TRUE(node_->queue->Recover().ok());
      EXPECT_EQ(node_->spool->recovered().files_unreadable, 0u);
      Deliver();
      node_->ExpectConservation("one failure");
      EXPECT_EQ(node_->LostEvents(), 0u);
      if (HasFailure()) FAIL() << "behind " << good;
    }
  }
}

TEST_F(SpoolReadingTest, WaitsForFileOfAnotherUser) {
  Prepare(3);
  node_->disk.Fail(Operation::kOpen, absl::FailedPreconditionError("permission denied"), 1);
  EXPECT_FALSE(node_->Begin());
  ASSERT_TRUE(node_->queue->Recover().ok());
  Deliver();
  node_->ExpectConservation("another user's");
  EXPECT_EQ(node_->LostEvents(), 0u);
}

TEST_F(SpoolReadingTest, ReportsUnreadableDataAsUnknown) {
  Prepare(3);
  node_->disk.Fail(Operation::kRead, absl::UnavailableError("input/output error"));
  EXPECT_FALSE(node_->Begin());
  for (uint32_t tries = 2; tries < limits::kSpoolReadTriesMax; ++tries) {
    EXPECT_FALSE(node_->queue->Recover().ok()) << tries;
  }
  ASSERT_TRUE(node_->queue->Recover().ok());
  EXPECT_GT(node_->spool->recovered().files_unreadable, 2u);
  EXPECT_EQ(node_->queue->chunks(), 0u);
  node_->disk.Heal();
  std::vector<StreamCursor> cursors = node_->aggregator.Cursors();
  ASSERT_EQ(cursors.size(), 2u);
  const std::vector<StreamCursor> before = cursors;
  node_->queue->MergeCursors(node_->capture, cursors);
  for (size_t i = 0; i < cursors.size(); ++i) {
    EXPECT_EQ(cursors[i].next_sequence, before[i].next_sequence + 1) << "sources go on behind it";
    EXPECT_EQ(cursors[i].events_before, before[i].events_before);
    ASSERT_EQ(cursors[i].losses_before.size(), 1u);
    EXPECT_EQ(cursors[i].losses_before[0].place, LossPlace::kSpool);
    EXPECT_EQ(cursors[i].losses_before[0].reason, LossReason::kUnknown);
    EXPECT_TRUE(cursors[i].losses_before[0].events_unknown);
  }
  EXPECT_EQ(node_->queue->chunks(), 2u);
  // Once.
  node_->queue->MergeCursors(node_->capture, cursors);
  EXPECT_EQ(node_->queue->chunks(), 2u);
  node_->aggregator.budget = ~uint64_t{0};
  node_->uploader->SetEnabled(true);
  node_->Run();
  EXPECT_EQ(node_->queue->chunks(), 0u);
  for (const auto& [name, stream] : node_->aggregator.streams) {
    ASSERT_EQ(stream.told.size(), 1u) << name;
    EXPECT_TRUE(stream.told[0].events_unknown);
  }
}

TEST_F(SpoolReadingTest, ReportsSegmentWithDamagedHeaderAsUnknown) {
  Prepare(3);
  const std::string directory = std::string(FakeNode::kRoot) + "/" + node_->capture.ToString();
  std::string first;
  for (const std::string& path : node_->disk.Paths()) {
    if (path.ends_with(".seg") && path.starts_with(directory) && first.empty()) first = path;
  }
  ASSERT_TRUE(node_->disk.FlipBit(first, 3));
  ASSERT_TRUE(node_->Begin());
  std::vector<StreamCursor> cursors = node_->aggregator.Cursors();
  node_->queue->MergeCursors(node_->capture, cursors);
  for (const StreamCursor& cursor : cursors) EXPECT_EQ(cursor.losses_before.size(), 1u);
}

}  // namespace
}  // namespace neurontrace
