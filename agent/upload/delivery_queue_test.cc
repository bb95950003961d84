// SPDX-License-Identifier: Apache-2.0
// Queue, spool and uploader together, on a fake disk: receipts, budgets and restarts. What counts
// is what the aggregator stores, and what is reported to it. Disks that fail: delivery_disk_test.
#include "agent/upload/delivery_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "agent/upload/delivery_queue_test_support.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST_F(DeliveryQueueTest, SpoolsBeforeSendingAndStoresAfterwards) {
  Begin();
  node_.Produce("a");
  EXPECT_EQ(node_.sources["a"].kept, 0u) << "never from within Submit";
  node_.Run();
  EXPECT_EQ(node_.sources["a"].kept, 1u);
  EXPECT_EQ(node_.sources["a"].stored, 0u);
  EXPECT_TRUE(node_.queue->Holds(node_.capture));
  Connect();
  node_.Run();
  EXPECT_EQ(node_.sources["a"].stored, 1u);
  EXPECT_FALSE(node_.queue->Holds(node_.capture));
  EXPECT_EQ(node_.queue->bytes(), 0u);
}

TEST_F(DeliveryQueueTest, WritesPendingChunksWithOneSync) {
  Begin();
  for (int i = 0; i < 20; ++i) node_.Produce("a");
  node_.Run();
  EXPECT_EQ(node_.spool->counters().chunks_kept, 20u);
  EXPECT_LE(node_.spool->counters().batches, 2u);
}

TEST_F(DeliveryQueueTest, MemoryIsBoundedAndTheRestComesBackFromTheDisk) {
  node_.columns_bytes = 30'000;
  Begin();
  ProduceMany("a", 200);
  ProduceMany("b", 5);
  node_.Run();
  EXPECT_LT(node_.queue->bytes(), node_.queue_bytes);
  EXPECT_TRUE(node_.queue->HasRoom());
  Connect();
  node_.Run(10 * kNsPerSecond);
  EXPECT_EQ(node_.queue->chunks(), 0u);
  node_.ExpectConservation("read back");
  EXPECT_EQ(node_.LostEvents(), 0u);
  EXPECT_EQ(node_.aggregator.received, 205u) << "each once";
}

TEST_F(DeliveryQueueTest, FullSpoolSurvivesARestartToTheByte) {
  node_.columns_bytes = 20'000;
  node_.options.capture_bytes_max = 2u << 20;
  Begin();
  ProduceMany("a", 30);
  ProduceMany("b", 30);
  node_.Run();
  Restart();
  EXPECT_EQ(node_.queue->counters().chunks_recovered, 60u);
  EXPECT_EQ(node_.spool->chunks(), 60u);
  Connect();
  ProduceMany("a", 1);
  node_.Run(10 * kNsPerSecond);
  node_.ExpectConservation("after a restart");
  EXPECT_EQ(node_.LostEvents(), 0u);
  const std::string restarted = node_.aggregator.streams["a"].bytes;

  FakeNode straight;
  straight.columns_bytes = 20'000;
  ASSERT_TRUE(straight.Begin());
  straight.Welcome();
  for (int i = 0; i < 31; ++i) straight.Produce("a");
  straight.Run();
  EXPECT_EQ(restarted, straight.aggregator.streams["a"].bytes);
}

TEST_F(DeliveryQueueTest, RemovesStoredChunksFromDisk) {
  node_.columns_bytes = 30'000;
  node_.options.capture_bytes_max = 1u << 20;
  Begin();
  ProduceMany("a", 12);
  node_.Run();
  EXPECT_GT(node_.disk.bytes(), 300'000u);
  Connect();
  node_.Run();
  EXPECT_LT(node_.disk.bytes(), 140'000u) << "one segment that is still written to";
  node_.uploader->ForgetCapture(node_.capture);
  node_.Run();
  EXPECT_THAT(node_.disk.Paths(), UnorderedElementsAre());
}

TEST_F(DeliveryQueueTest, DropsTheOldestAndTheAccountIsExact) {
  node_.columns_bytes = 20'000;
  node_.options.bytes_max = node_.options.capture_bytes_max = 300'000;
  Begin();
  for (int i = 0; i < 40; ++i) {
    ProduceMany("a", 1);
    if (i < 10) ProduceMany("b", 1);
    if (i == 0) node_.Produce("c", true);  // ends at once, and must not be forgotten
  }
  node_.Run();
  EXPECT_LE(node_.spool->bytes(), 310'000u);
  EXPECT_GT(node_.queue->counters().chunks_dropped, 20u);
  Connect();
  node_.Run(10 * kNsPerSecond);
  node_.ExpectConservation("dropped");
  EXPECT_EQ(node_.queue->chunks(), 0u);
  const auto& a = node_.aggregator.streams["a"];
  EXPECT_EQ(a.sequences.back(), 39u);
  EXPECT_THAT(a.lost, UnorderedElementsAre(Pair(kDropped, a.lost_events())));
  EXPECT_TRUE(node_.aggregator.streams["c"].cursor.ended);
  EXPECT_EQ(node_.aggregator.streams["c"].lost_events(), 10u);
  EXPECT_EQ(node_.LostEvents(), node_.queue->counters().events_lost);
  EXPECT_EQ(node_.sources["a"].lost, a.lost_events() / 10);
}

TEST_F(DeliveryQueueTest, ReportsDropsAfterRestart) {
  node_.columns_bytes = 20'000;
  node_.options.bytes_max = node_.options.capture_bytes_max = 300'000;
  Begin();
  ProduceMany("b", 3);
  ProduceMany("a", 40);
  node_.Run();
  Restart();
  Connect();
  node_.Run(10 * kNsPerSecond);
  node_.ExpectConservation("dropped, and restarted");
  EXPECT_THAT(node_.aggregator.streams["a"].lost,
              UnorderedElementsAre(Pair(kDropped, ::testing::_)));
  EXPECT_THAT(node_.aggregator.streams["b"].lost, UnorderedElementsAre(Pair(kDropped, 30)));
}

TEST_F(DeliveryQueueTest, RunawayCaptureDoesNotPushOutAnother) {
  node_.columns_bytes = 20'000;
  node_.options.bytes_max = 1u << 20;
  node_.options.capture_bytes_max = 500'000;
  Begin();
  const CaptureId calm = node_.capture;
  ProduceMany("a", 10);
  node_.Run();
  SeededRandom random(9);
  node_.capture = CaptureId::Make(node_.clock, random);
  ProduceMany("z", 100);
  node_.Run();
  EXPECT_GT(node_.queue->counters().chunks_dropped, 50u);
  EXPECT_EQ(node_.sources["a"].lost, 0u);
  EXPECT_TRUE(node_.queue->Holds(calm));
}

TEST_F(DeliveryQueueTest, RefusingTheNewestMakesSourcesWaitAndLosesNothing) {
  node_.columns_bytes = 20'000;
  node_.options.bytes_max = node_.options.capture_bytes_max = 300'000;
  node_.options.when_full = Spool::WhenFull::kRefuseNewest;
  Begin();
  int produced = 0;
  while (node_.queue->HasRoom()) {
    ASSERT_LT(++produced, 100);
    node_.Produce("a");
    node_.Run(kNsPerSecond);
  }
  EXPECT_GT(produced, 10);
  EXPECT_TRUE(node_.spool->full());
  Connect();
  node_.Run(10 * kNsPerSecond);
  EXPECT_TRUE(node_.queue->HasRoom());
  node_.ExpectConservation("refused");
  EXPECT_EQ(node_.LostEvents(), 0u);
}

TEST_F(DeliveryQueueTest, CaptureThatHasToWaitHoldsUpNoOther) {
  node_.columns_bytes = 20'000;
  node_.options.bytes_max = 2u << 20;
  node_.options.capture_bytes_max = 300'000;
  node_.options.when_full = Spool::WhenFull::kRefuseNewest;
  Begin();
  const CaptureId runaway = node_.capture;
  for (int i = 0; i < 40 && node_.queue->HasRoom(runaway); ++i) ProduceMany("a", 1);
  ProduceMany("a", 5);  // what was read already
  EXPECT_FALSE(node_.queue->HasRoom(runaway));
  SeededRandom random(9);
  node_.capture = CaptureId::Make(node_.clock, random);
  EXPECT_TRUE(node_.queue->HasRoom(node_.capture));
  ProduceMany("z", 5);
  node_.Run();
  EXPECT_EQ(node_.sources["z"].kept, 5u);
  EXPECT_LT(node_.sources["a"].kept, node_.sources["a"].produced);
}

TEST_F(DeliveryQueueTest, QuarantinesRefusedChunkAndContinues) {
  node_.aggregator.refuses = [](const ChunkHeader& header) { return header.sequence == 1; };
  Begin();
  ProduceMany("a", 3);
  node_.Run();
  Connect();
  node_.Run();
  node_.ExpectConservation("refused");
  EXPECT_EQ(node_.LostEvents(), 10u);
  const auto paths = node_.disk.Paths();
  EXPECT_EQ(std::count_if(paths.begin(), paths.end(),
                          [](const std::string& path) { return path.ends_with(".chunk"); }),
            1);
}

TEST_F(DeliveryQueueTest, ReportsAggregatorThatLostChunks) {
  Begin();
  Connect();
  ProduceMany("a", 5);
  node_.Run();
  node_.aggregator.streams.clear();  // its store is another one
  ProduceMany("a", 1);
  node_.Run();
  node_.ExpectConservation("the store was lost");
  EXPECT_THAT(node_.aggregator.streams["a"].lost,
              UnorderedElementsAre(
                  Pair(std::pair<int, int>(v1::LOSS_PLACE_STORE, v1::LOSS_REASON_UNKNOWN), 50)));
}

TEST_F(DeliveryQueueTest, CaptureThatIsOverIsRemovedAtTheWelcome) {
  Begin();
  ProduceMany("a", 5);
  node_.Run();
  Restart();
  node_.uploader->ForgetAllBut({});
  node_.Run();
  EXPECT_EQ(node_.queue->chunks(), 0u);
  EXPECT_EQ(node_.spool->captures(), 0u);
  EXPECT_THAT(node_.disk.Paths(), UnorderedElementsAre());
}

TEST_F(DeliveryQueueTest, TwoAgentsDoNotShareASpool) {
  Begin();
  FakeFileSystem& disk = node_.disk;
  SeededRandom random(3);
  Spool other(node_.options, disk, node_.runner, node_.runner, node_.clock, random);
  DeliveryQueue queue(&other);
  const absl::Status status = queue.Recover();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("another process"));
  EXPECT_TRUE(other.CanHoldChunks());
}

}  // namespace
}  // namespace neurontrace
