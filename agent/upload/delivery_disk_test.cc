// SPDX-License-Identifier: Apache-2.0
// The queue of what is to be delivered, on a disk that fails, fills up and lies.
#include "agent/upload/delivery_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "agent/upload/delivery_queue_test_support.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using Operation = FakeFileSystem::Operation;

class DeliveryDiskTest : public DeliveryQueueTest {};

TEST_F(DeliveryDiskTest, DiskThatFailsLeavesMemoryAndTheAggregator) {
  Begin();
  ProduceMany("a", 3);
  node_.disk.Fail(Operation::kSync, Unavailable("input/output error"));
  ProduceMany("a", 3);
  node_.Run();
  EXPECT_FALSE(node_.spool->health().ok());
  EXPECT_EQ(node_.sources["a"].kept, 3u);
  Connect();
  node_.Run();
  EXPECT_EQ(node_.sources["a"].stored, 6u) << "sent from memory";
  ProduceMany("a", 2);
  node_.Run();
  EXPECT_EQ(node_.sources["a"].stored, 8u);
  node_.disk.Heal();
  node_.Run(60 * kNsPerSecond);
  EXPECT_TRUE(node_.spool->health().ok());
  ProduceMany("a", 1);
  node_.Run();
  EXPECT_EQ(node_.sources["a"].kept, 4u);
  node_.ExpectConservation("the disk failed");
  EXPECT_EQ(node_.LostEvents(), 0u);
}

TEST_F(DeliveryDiskTest, FullDiskIsTriedAgainAndNothingIsLost) {
  node_.columns_bytes = 30'000;
  node_.disk.SetCapacity(200'000);
  Begin();
  ProduceMany("a", 20);
  node_.Run();
  EXPECT_FALSE(node_.spool->health().ok());
  EXPECT_THAT(std::string(node_.spool->health().message()), HasSubstr("no space left"));
  EXPECT_LT(node_.sources["a"].kept, 20u);
  node_.disk.SetCapacity(~uint64_t{0});
  node_.Run(60 * kNsPerSecond);
  EXPECT_EQ(node_.sources["a"].kept, 20u);
  Restart();
  Connect();
  node_.Run(10 * kNsPerSecond);
  node_.ExpectConservation("the disk was full");
  EXPECT_EQ(node_.LostEvents(), 0u);
}

TEST_F(DeliveryDiskTest, FullDiskGetsRoomFromWhatIsStored) {
  node_.columns_bytes = 30'000;
  node_.options.capture_bytes_max = 1u << 20;
  Begin();
  ProduceMany("a", 10);
  node_.Run();
  node_.disk.SetCapacity(node_.disk.bytes());  // not even a cursor fits
  ProduceMany("a", 1);
  node_.Run();
  EXPECT_FALSE(node_.spool->health().ok());
  Connect();
  node_.Run(60 * kNsPerSecond);
  EXPECT_EQ(node_.sources["a"].stored, 11u);
  ProduceMany("a", 5);
  node_.Run(60 * kNsPerSecond);
  EXPECT_TRUE(node_.spool->health().ok()) << node_.spool->health();
  EXPECT_EQ(node_.sources["a"].stored, 16u);
}

// Others fill the disk: the spool gives back what it has, so that a fifth of the disk stays free,
// and what it drops is counted. When there is room again it keeps chunks again, by itself.
TEST_F(DeliveryDiskTest, KeepsConfiguredShareOfDiskFree) {
  node_.columns_bytes = 30'000;
  node_.options.free_percent_min = 20;
  node_.options.bytes_max = node_.options.capture_bytes_max = 1u << 20;  // in small segments
  node_.disk.SetCapacity(1'000'000);
  Begin();
  ProduceMany("a", 60);
  node_.Run(10 * kNsPerSecond);
  EXPECT_GE(1'000'000 - node_.disk.bytes(), 200'000u - 40'000u) << "but for a batch";
  EXPECT_LE(node_.spool->bytes_max(), 820'000u);
  EXPECT_GT(node_.spool->counters().segments_dropped, 0u);
  EXPECT_TRUE(node_.spool->health().ok()) << node_.spool->health();
  node_.disk.SetContents("/others/file", std::string(700'000, 'x'));
  ProduceMany("a", 5);
  node_.Run(20 * kNsPerSecond);
  EXPECT_GE(1'000'000 - node_.disk.bytes(), 200'000u - 40'000u);
  ASSERT_TRUE(node_.disk.Remove("/others/file").ok());
  const uint64_t kept = node_.spool->counters().chunks_kept;
  ProduceMany("a", 5);
  node_.Run(20 * kNsPerSecond);
  EXPECT_GE(node_.spool->counters().chunks_kept, kept + 5);
  Connect();
  node_.Run(60 * kNsPerSecond);
  node_.ExpectConservation("a share of the disk stays free");
}

// Where nothing may be dropped, sources wait, and continue by themselves once the disk has room.
TEST_F(DeliveryDiskTest, WaitsForDiskSpaceWhenDroppingIsForbidden) {
  node_.columns_bytes = 30'000;
  node_.options.free_percent_min = 50;
  node_.options.bytes_max = node_.options.capture_bytes_max = 1u << 20;
  node_.options.when_full = Spool::WhenFull::kRefuseNewest;
  node_.disk.SetCapacity(1'000'000);
  Begin();
  ProduceMany("a", 2);
  node_.disk.SetContents("/others/file", std::string(500'000, 'x'));
  ProduceMany("a", 3);
  node_.Run(5 * kNsPerSecond);
  EXPECT_TRUE(node_.spool->full());
  EXPECT_EQ(node_.spool->counters().segments_dropped, 0u);
  ASSERT_TRUE(node_.disk.Remove("/others/file").ok());
  node_.Run(5 * kNsPerSecond);
  EXPECT_FALSE(node_.spool->full());
  EXPECT_EQ(node_.spool->counters().chunks_kept, 5u);
}

// The share that must stay free leaves nothing for the spool: chunks are sent from memory, as with
// a disk that fails, until there is room. Waiting would never end, as nothing that is delivered
// makes room.
class DeliveryWithoutRoomTest : public DeliveryQueueTest,
                                public ::testing::WithParamInterface<Spool::WhenFull> {};

TEST_P(DeliveryWithoutRoomTest, ChunksAreSentFromMemory) {
  node_.columns_bytes = 30'000;
  node_.options.free_percent_min = 50;
  node_.options.bytes_max = node_.options.capture_bytes_max = 1u << 20;
  node_.options.when_full = GetParam();
  node_.disk.SetCapacity(1'000'000);
  node_.disk.SetContents("/others/file", std::string(600'000, 'x'));
  Begin();
  Connect();
  ProduceMany("a", 20);
  node_.Run(60 * kNsPerSecond);
  EXPECT_EQ(node_.sources["a"].stored, 20u);
  EXPECT_EQ(node_.LostEvents(), 0u);
  EXPECT_FALSE(node_.spool->full());
  EXPECT_FALSE(node_.spool->health().ok()) << "/readyz must say so";
  ASSERT_TRUE(node_.disk.Remove("/others/file").ok());
  node_.Run(60 * kNsPerSecond);
  EXPECT_TRUE(node_.spool->health().ok()) << node_.spool->health();
  const uint64_t kept = node_.spool->counters().chunks_kept;
  ProduceMany("a", 5);
  node_.Run(20 * kNsPerSecond);
  EXPECT_EQ(node_.spool->counters().chunks_kept, kept + 5);
  node_.ExpectConservation("the disk had no room");
}

INSTANTIATE_TEST_SUITE_P(Policies, DeliveryWithoutRoomTest,
                         ::testing::Values(Spool::WhenFull::kDropOldest,
                                           Spool::WhenFull::kRefuseNewest));

TEST_F(DeliveryDiskTest, MemoryFullBesideADeadDiskKeepsOnlyTheLoss) {
  node_.queue_bytes = 40'000;
  node_.disk.Fail(Operation::kCreate, Unavailable("input/output error"));
  Begin();
  int produced = 0;
  for (; node_.queue->bytes() < 2 * node_.queue_bytes; ++produced) ProduceMany("a", 1);
  EXPECT_FALSE(node_.queue->HasRoom());
  ProduceMany("a", 2);
  EXPECT_EQ(node_.queue->counters().chunks_refused_full, 2u);
  Connect();
  node_.Run(10 * kNsPerSecond);
  node_.ExpectConservation("memory was full");
  EXPECT_EQ(node_.LostEvents(), 20u);
}

TEST_F(DeliveryDiskTest, ReadOnlySpoolIsStillDelivered) {
  Begin();
  ProduceMany("a", 5);
  node_.Run();
  node_.disk.SetReadOnly(true);
  Restart();
  EXPECT_EQ(node_.queue->counters().chunks_recovered, 5u);
  Connect();
  ProduceMany("a", 2);
  node_.Run(10 * kNsPerSecond);
  node_.ExpectConservation("read-only");
  EXPECT_EQ(node_.LostEvents(), 0u);
  EXPECT_FALSE(node_.spool->health().ok());
}

TEST_F(DeliveryDiskTest, FlippedBitLosesAndReportsItsChunk) {
  Begin();
  ProduceMany("a", 9);
  node_.Run();
  // In the columns of a chunk in the middle; records are a little over columns_bytes long.
  ASSERT_TRUE(node_.disk.FlipBit(SegmentPath(1), 8 * (4 * 3'200 + 1'500)));
  Restart();
  Connect();
  node_.Run(10 * kNsPerSecond);
  node_.ExpectConservation("a bit was flipped");
  EXPECT_THAT(node_.aggregator.streams["a"].lost, UnorderedElementsAre(Pair(kDamaged, 10)));
  EXPECT_EQ(node_.queue->counters().chunks_damaged, 1u);
}

TEST_F(DeliveryDiskTest, SurvivesAndReportsAnyFlippedBit) {
  node_.columns_bytes = 64;
  Begin();
  for (int i = 0; i < 4; ++i) {
    node_.Produce("a");
    node_.Run(20'000'000);
  }
  node_.Run();
  const std::string path = SegmentPath(1);
  const std::string good = *node_.disk.Contents(path);
  ASSERT_LT(good.size(), 2'000u);
  for (size_t byte = 0; byte < good.size(); ++byte) {
    FakeNode other;
    other.columns_bytes = 64;
    other.capture = node_.capture;
    for (int i = 0; i < 4; ++i) other.Produce("a");
    std::string bad = good;
    bad[byte] = static_cast<char>(bad[byte] ^ 0x10);
    other.disk.SetContents(path, bad);
    ASSERT_TRUE(other.Begin()) << byte;
    // The source of this test still has everything, so that it reads again whatever the spool does
    // not resume behind; what the spool does resume behind must be stored, or reported.
    other.NewProcess();
    other.Welcome();
    other.Run(20 * kNsPerSecond);
    other.ExpectConservation("byte " + std::to_string(byte));
    EXPECT_LE(other.LostEvents(), 10u) << byte;
    if (HasFailure()) return;
  }
}

TEST_F(DeliveryDiskTest, ReportsRemovedSegmentAsLost) {
  node_.columns_bytes = 30'000;
  node_.options.capture_bytes_max = 1u << 20;
  node_.queue_bytes = 60'000;  // nearly all has to be read back
  Begin();
  ProduceMany("a", 20);
  node_.Run();
  ASSERT_TRUE(node_.disk.Remove(SegmentPath(3)).ok());
  Connect();
  node_.Run(20 * kNsPerSecond);
  node_.ExpectConservation("removed");
  EXPECT_GT(node_.LostEvents(), 0u);
  EXPECT_LE(node_.LostEvents(), 50u);
}

TEST_F(DeliveryDiskTest, RetriesUnreadableDisk) {
  node_.columns_bytes = 30'000;
  node_.queue_bytes = 60'000;
  Begin();
  ProduceMany("a", 20);
  node_.Run();
  node_.disk.Fail(Operation::kRead, Unavailable("input/output error"), 2);
  Connect();
  node_.Run(20 * kNsPerSecond);
  node_.ExpectConservation("read errors");
  EXPECT_EQ(node_.LostEvents(), 0u);
}

}  // namespace
}  // namespace neurontrace
