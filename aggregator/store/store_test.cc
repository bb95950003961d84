// SPDX-License-Identifier: Apache-2.0
// What is stored stays, once, through reopening, retries and torn files. On disk where the disk is
// the point, in memory elsewhere.
#include "aggregator/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/write_batch.h>
#include <sys/stat.h>

#include <filesystem>
#include <vector>

#include "aggregator/store/database.h"
#include "aggregator/store/store_test_support.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Store> OpenOnDisk(const std::string& path) {
  auto store = Store::Open(path, {.aggregator_id = "aggregator-1"});
  EXPECT_TRUE(store.ok()) << store.status();
  return std::move(store).value();
}

TEST(Store, KeepsChunksCursorsAndCapturesWhenReopened) {
  const TemporaryDirectory directory;
  {
    const auto store = OpenOnDisk(directory.path());
    ASSERT_TRUE(store->captures().Put(TestCapture(1), true).ok());
    const std::vector<ReceivedChunk> chunks = {TestChunk(1, TestStream(0), 0),
                                               TestChunk(1, TestStream(3), 0),
                                               TestChunk(1, TestStream(0), 1)};
    const auto results = store->chunks().PutBatch(chunks);
    ASSERT_TRUE(results.ok()) << results.status();
    for (const PutResult& result : *results) EXPECT_EQ(result.outcome, PutOutcome::kStored);
  }
  const auto store = OpenOnDisk(directory.path());
  EXPECT_EQ(store->aggregator_id(), "aggregator-1");
  EXPECT_EQ(store->captures().Get(TestCaptureId(1)).value(), TestCapture(1));

  const auto cursors = store->chunks().Cursors(TestCaptureId(1), "agent-a").value();
  ASSERT_EQ(cursors.size(), 2u);
  EXPECT_EQ(cursors[0].stream, TestStream(0));
  EXPECT_EQ(cursors[0].next_sequence, 2u);
  EXPECT_EQ(cursors[0].source_position, 64u);
  EXPECT_EQ(cursors[0].source_skip, 3u);

  const CaptureReader reader = store->OpenCapture(TestCaptureId(1));
  const auto streams = reader.Streams().value();
  ASSERT_EQ(streams.size(), 2u);
  EXPECT_EQ(streams[0].events, 20u);
  StoredChunk chunk;
  ASSERT_TRUE(reader.Stream(streams[0].number).ReadChunk(1, chunk).ok());
  EXPECT_EQ(chunk.header_bytes(), "header 1");
  EXPECT_EQ(chunk.columns(), std::string(2'000, 'b'));
  EXPECT_EQ(chunk.columns_bytes(), 5'000u);
  EXPECT_EQ(chunk.event_count(), 10u);
  EXPECT_EQ(chunk.first_timestamp_ns(), 1'005u);
  EXPECT_EQ(chunk.crc32c(), 0xabcd0001u);

  // Numbers continue after the ones given before.
  EXPECT_EQ(PutOne(*store, TestChunk(1, TestStream(9), 0)).outcome, PutOutcome::kStored);
  EXPECT_EQ(reader.Streams()->back().number, 2u);
}

TEST(Store, DropsDuplicatesAlsoAfterReopening) {
  const TemporaryDirectory directory;
  {
    const auto store = OpenOnDisk(directory.path());
    ASSERT_TRUE(store->captures().Put(TestCapture(1), true).ok());
    PutOne(*store, TestChunk(1, TestStream(0), 0));
    const std::vector<ReceivedChunk> twice = {TestChunk(1, TestStream(0), 1),
                                              TestChunk(1, TestStream(0), 1)};
    const auto results = store->chunks().PutBatch(twice).value();
    EXPECT_EQ(results[0].outcome, PutOutcome::kStored);
    EXPECT_EQ(results[1].outcome, PutOutcome::kDuplicate);
  }
  const auto store = OpenOnDisk(directory.path());
  const PutResult result = PutOne(*store, TestChunk(1, TestStream(0), 0));
  EXPECT_EQ(result.outcome, PutOutcome::kDuplicate);
  EXPECT_EQ(result.next_sequence, 2u);
  EXPECT_EQ(store->OpenCapture(TestCaptureId(1)).Streams()->front().chunks, 2u);
}

TEST(Store, DetectsRetryWithOtherContent) {
  const auto store = OpenInMemory();
  ASSERT_TRUE(store->captures().Put(TestCapture(1), true).ok());
  ReceivedChunk chunk = TestChunk(1, TestStream(0), 0);
  PutOne(*store, chunk);
  EXPECT_FALSE(PutOne(*store, chunk).differs);
  chunk.crc32c ^= 1;
  const PutResult other = PutOne(*store, chunk);
  EXPECT_EQ(other.outcome, PutOutcome::kDuplicate);
  EXPECT_TRUE(other.differs);
  chunk.header.replaced = Loss{.place = LossPlace::kSpool, .events = 10};
  EXPECT_FALSE(PutOne(*store, chunk).differs);
}

TEST(Store, AsksForTheCursorAtAGapAndStoresNothing) {
  const auto store = OpenInMemory();
  ASSERT_TRUE(store->captures().Put(TestCapture(1), true).ok());
  PutOne(*store, TestChunk(1, TestStream(0), 0));
  const PutResult result = PutOne(*store, TestChunk(1, TestStream(0), 2));
  EXPECT_EQ(result.outcome, PutOutcome::kGap);
  EXPECT_EQ(result.next_sequence, 1u);
  StoredChunk chunk;
  EXPECT_EQ(store->OpenCapture(TestCaptureId(1)).Stream(0).ReadChunk(2, chunk).code(),
            absl::StatusCode::kNotFound);
}

TEST(Store, DoesNotWaitForChunksThatAreGone) {
  const auto store = OpenInMemory();
  ASSERT_TRUE(store->captures().Put(TestCapture(1), true).ok());
  PutOne(*store, TestChunk(1, TestStream(0), 0));
  ReceivedChunk behind = TestChunk(1, TestStream(0), 5);
  behind.gone_before = PrecedingGap{};
  const PutResult skipped = PutOne(*store, behind);
  EXPECT_EQ(skipped.outcome, PutOutcome::kStored);
  EXPECT_EQ(skipped.next_sequence, 6u);
  EXPECT_EQ(PutOne(*store, behind).outcome, PutOutcome::kDuplicate);
}

TEST(Store, AGapAtTheFirstChunkLeavesNoStream) {
  const auto store = OpenInMemory();
  ASSERT_TRUE(store->captures().Put(TestCapture(1), true).ok());
  EXPECT_EQ(PutOne(*store, TestChunk(1, TestStream(0), 5)).outcome, PutOutcome::kGap);
  EXPECT_TRUE(store->OpenCapture(TestCaptureId(1)).Streams()->empty());
  EXPECT_TRUE(store->chunks().Cursors(TestCaptureId(1), "agent-a")->empty());
}

TEST(Store, TakesNothingAfterTheEndOfAStream) {
  const auto store = OpenInMemory();
  ASSERT_TRUE(store->captures().Put(TestCapture(1), true).ok());
  ReceivedChunk last = TestChunk(1, TestStream(0), 0);
  last.header.end_of_stream = true;
  PutOne(*store, last);
  EXPECT_EQ(PutOne(*store, last).outcome, PutOutcome::kDuplicate);
  EXPECT_EQ(PutOne(*store, TestChunk(1, TestStream(0), 1)).outcome, PutOutcome::kStreamEnded);
  EXPECT_TRUE(store->chunks().Cursors(TestCaptureId(1), "agent-a")->front().ended);
}

TEST(Store, RefusesChunksOfUnknownCaptures) {
  const auto store = OpenInMemory();
  EXPECT_EQ(PutOne(*store, TestChunk(4, TestStream(0), 0)).outcome, PutOutcome::kUnknownCapture);
}

TEST(Store, CursorsAreThoseOfTheAgentAlone) {
  const auto store = OpenInMemory();
  ASSERT_TRUE(store->captures().Put(TestCapture(1), true).ok());
  PutOne(*store, TestChunk(1, TestStream(0, "agent-a"), 0));
  PutOne(*store, TestChunk(1, TestStream(0, "agent-b"), 0));
  const auto cursors = store->chunks().Cursors(TestCaptureId(1), "agent-b").value();
  ASSERT_EQ(cursors.size(), 1u);
  EXPECT_EQ(cursors[0].stream.agent_id, "agent-b");
  store->chunks().Forget(TestCaptureId(1));
  EXPECT_EQ(store->chunks().Cursors(TestCaptureId(1), "agent-a")->size(), 1u);
}

// The newest log file is cut in the middle of its last write, as after a power failure.
TEST(Store, ATornWriteLosesAllOfItOrNothing) {
  const TemporaryDirectory directory;
  {
    const auto store = OpenOnDisk(directory.path());
    ASSERT_TRUE(store->captures().Put(TestCapture(1), true).ok());
    PutOne(*store, TestChunk(1, TestStream(0), 0));
    const std::vector<ReceivedChunk> torn = {TestChunk(1, TestStream(0), 1),
                                             TestChunk(1, TestStream(1), 0)};
    ASSERT_TRUE(store->chunks().PutBatch(torn).ok());
  }
  std::filesystem::path log;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    if (entry.path().extension() == ".log" && entry.file_size() > 0) log = entry.path();
  }
  ASSERT_FALSE(log.empty());
  std::filesystem::resize_file(log, std::filesystem::file_size(log) - 1'000);

  const auto store = OpenOnDisk(directory.path());
  const CaptureReader reader = store->OpenCapture(TestCaptureId(1));
  const auto streams = reader.Streams().value();
  ASSERT_EQ(streams.size(), 1u);
  EXPECT_EQ(streams[0].next_sequence, 1u);
  StoredChunk chunk;
  EXPECT_TRUE(reader.Stream(0).ReadChunk(0, chunk).ok());
  EXPECT_EQ(reader.Stream(0).ReadChunk(1, chunk).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(IndexedSequences(reader.Stream(0).Index()), ElementsAre(0));
  EXPECT_EQ(PutOne(*store, TestChunk(1, TestStream(0), 1)).outcome, PutOutcome::kStored);
}

TEST(Store, DeletingACaptureRemovesItAndGivesSpaceBack) {
  const TemporaryDirectory directory;
  const auto store = OpenOnDisk(directory.path());
  for (const uint8_t capture : {1, 2}) {
    ASSERT_TRUE(store->captures().Put(TestCapture(capture), true).ok());
    for (uint64_t sequence = 0; sequence < 4; ++sequence) {
      ReceivedChunk chunk = TestChunk(capture, TestStream(0), sequence);
      chunk.columns.resize(size_t{2} << 20, 'x');
      PutOne(*store, chunk);
    }
  }
  const uint64_t before = store->bytes();
  EXPECT_GT(before, uint64_t{16} << 20);
  const auto deleted = store->DeleteCapture(TestCaptureId(1));
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(deleted->chunks, 4u);
  EXPECT_GT(deleted->bytes, uint64_t{8} << 20);
  EXPECT_LT(store->bytes(), before - (uint64_t{7} << 20));

  EXPECT_EQ(store->captures().size(), 1u);
  EXPECT_EQ(store->captures().Get(TestCaptureId(1)).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(store->OpenCapture(TestCaptureId(1)).Streams()->empty());
  EXPECT_FALSE(store->OpenCapture(TestCaptureId(1)).Stream(0).Index().Valid());
  EXPECT_EQ(PutOne(*store, TestChunk(1, TestStream(0), 4)).outcome, PutOutcome::kUnknownCapture);
  EXPECT_EQ(store->DeleteCapture(TestCaptureId(1)).status().code(), absl::StatusCode::kNotFound);

  StoredChunk chunk;
  EXPECT_TRUE(store->OpenCapture(TestCaptureId(2)).Stream(0).ReadChunk(3, chunk).ok());
}

// Of two captures that were recorded at once, and so share files, and a third.
TEST(Store, ADeletedCapturesSpaceIsFreeOnTheDisk) {
  const TemporaryDirectory directory;
  const auto store = OpenOnDisk(directory.path());
  const auto on_disk = [&] {
    uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
      struct stat status {};
      if (stat(entry.path().c_str(), &status) == 0) bytes += uint64_t{512} * status.st_blocks;
    }
    return bytes;
  };
  constexpr uint64_t kChunkBytes = uint64_t{1} << 20;
  constexpr uint64_t kChunks = 48;
  const auto fill = [&](std::vector<uint8_t> captures) {
    for (const uint8_t capture : captures) {
      ASSERT_TRUE(store->captures().Put(TestCapture(capture), true).ok());
    }
    for (uint64_t sequence = 0; sequence < kChunks; ++sequence) {
      for (const uint8_t capture : captures) {
        ReceivedChunk chunk = TestChunk(capture, TestStream(0), sequence);
        chunk.columns.resize(kChunkBytes, 'x');
        PutOne(*store, chunk);
      }
    }
  };
  fill({1, 2});
  fill({3});
  EXPECT_GE(on_disk(), 3 * kChunks * kChunkBytes);
  ASSERT_TRUE(store->DeleteCapture(TestCaptureId(3)).ok());
  EXPECT_LT(on_disk(), 5 * kChunks * kChunkBytes / 2);
  ASSERT_TRUE(store->DeleteCapture(TestCaptureId(1)).ok());
  EXPECT_LT(on_disk(), 2 * kChunks * kChunkBytes);
  StoredChunk chunk;
  EXPECT_TRUE(store->OpenCapture(TestCaptureId(2)).Stream(0).ReadChunk(kChunks - 1, chunk).ok());
  ASSERT_TRUE(store->DeleteCapture(TestCaptureId(2)).ok());
  EXPECT_LT(on_disk(),
            8 * kChunkBytes);  // the log's first blocks are allocated before they are used
}

TEST(Store, FinishesADeletionThatWasInterrupted) {
  const TemporaryDirectory directory;
  {
    const auto store = OpenOnDisk(directory.path());
    for (const uint8_t capture : {1, 2}) {
      ASSERT_TRUE(store->captures().Put(TestCapture(capture), true).ok());
      PutOne(*store, TestChunk(capture, TestStream(0), 0));
    }
    ASSERT_TRUE(store->captures().Delete(TestCaptureId(1)).ok());
  }
  const auto store = OpenOnDisk(directory.path());
  StoredChunk chunk;
  EXPECT_EQ(store->OpenCapture(TestCaptureId(1)).Stream(0).ReadChunk(0, chunk).code(),
            absl::StatusCode::kNotFound);
  EXPECT_TRUE(store->OpenCapture(TestCaptureId(1)).Streams()->empty());
  EXPECT_TRUE(store->OpenCapture(TestCaptureId(2)).Stream(0).ReadChunk(0, chunk).ok());
}

TEST(Store, RejectsNewerStoreWithMessage) {
  const TemporaryDirectory directory;
  {
    const auto database = Database::Open(directory.path(), nullptr).value();
    ASSERT_TRUE(database->Put(Family::kMeta, "format", "3", true).ok());
    rocksdb::ColumnFamilyHandle* added = nullptr;
    ASSERT_TRUE(database->db().CreateColumnFamily({}, "added_later", &added).ok());
    database->db().DestroyColumnFamilyHandle(added);
  }
  const auto store = Store::Open(directory.path(), {});
  EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(store.status().message()),
              HasSubstr("it has format 3 of a newer neurontrace"));
}

TEST(Store, RefusesAStoreOfADevelopmentVersion) {
  const TemporaryDirectory directory;
  {
    const auto database = Database::Open(directory.path(), nullptr).value();
    ASSERT_TRUE(database->Put(Family::kMeta, "format_version", "2", true).ok());
    ASSERT_TRUE(
        database->db().Delete({}, database->family(Family::kMeta), rocksdb::Slice("format")).ok());
  }
  const auto store = Store::Open(directory.path(), {});
  EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("before 0.1.0"));
}

TEST(Store, ReportsStoreInUse) {
  const TemporaryDirectory directory;
  const auto first = OpenOnDisk(directory.path());
  const auto second = Store::Open(directory.path(), {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("has the store open"));
}

TEST(InventoryStore, PrunesTheWorkersOfOneInstanceByAge) {
  const auto store = OpenInMemory();
  for (const uint32_t pid : {1u, 2u}) {
    for (const char* instance : {"i-1", "i-10"}) {
      WorkerRecord worker;
      worker.info.identity = {.instance_id = instance, .pid = pid};
      worker.info.state = WorkerState::kIdle;
      worker.last_seen_realtime_ns = pid * 100;
      ASSERT_TRUE(store->inventory().PutWorker(worker).ok());
    }
  }
  ASSERT_TRUE(store->inventory().PruneWorkers("i-1", 150).ok());
  EXPECT_FALSE(store->inventory().Worker({.instance_id = "i-1", .pid = 1}).ok());
  EXPECT_TRUE(store->inventory().Worker({.instance_id = "i-1", .pid = 2}).ok());
  EXPECT_TRUE(store->inventory().Worker({.instance_id = "i-10", .pid = 1}).ok());
}

// Goal: a canary moves its stream's cursor and nothing that anybody reads or counts, and a store
// holds one of them a stream.

ReceivedChunk TestCanary(uint64_t sequence, uint64_t sent_ns) {
  ReceivedChunk chunk = TestChunk(1, TestStream(0), sequence);
  chunk.header.event_count = 0;
  chunk.header.first_timestamp_ns = chunk.header.last_timestamp_ns = 0;
  chunk.header.columns_bytes = 0;
  chunk.header.canary_realtime_ns = sent_ns;
  chunk.columns.clear();
  return chunk;
}

class CanaryTest : public ::testing::Test {
 protected:
  CanaryTest() : store_(Store::Open("/store", {.in_memory = true}).value()) {
    EXPECT_TRUE(store_->captures().Put(TestCapture(1), true).ok());
  }
  PutOutcome Put(const ReceivedChunk& chunk) {
    return store_->chunks().PutBatch({&chunk, 1}).value().front().outcome;
  }
  CaptureReader reader() { return store_->OpenCapture(TestCaptureId(1)); }
  bool IsThere(uint64_t sequence) {
    StoredChunk chunk;
    return reader().Stream(0).ReadChunk(sequence, chunk).ok();
  }

  std::unique_ptr<Store> store_;
};

TEST_F(CanaryTest, MovesTheCursorAndIsCountedNowhere) {
  EXPECT_EQ(Put(TestChunk(1, TestStream(0), 0)), PutOutcome::kStored);
  const StreamRecord before = reader().Streams()->front();
  EXPECT_EQ(Put(TestCanary(1, 77)), PutOutcome::kStored);
  EXPECT_EQ(Put(TestCanary(1, 77)), PutOutcome::kDuplicate);
  StreamRecord after = reader().Streams()->front();
  EXPECT_EQ(after.next_sequence, 2u);
  EXPECT_EQ(after.canary_realtime_ns, 77u);
  after.next_sequence = before.next_sequence;
  after.source_position = before.source_position;
  after.canary_realtime_ns = after.canary_sequence = 0;
  EXPECT_EQ(after, before);
  ChunkIndexIterator index = reader().Stream(0).Index();
  ASSERT_TRUE(index.Valid());
  EXPECT_EQ(index.entry().sequence, 0u);
  index.Next();
  EXPECT_FALSE(index.Valid());
}

TEST_F(CanaryTest, OnlyTheLastOneIsKept) {
  EXPECT_EQ(Put(TestCanary(0, 60)), PutOutcome::kStored);
  EXPECT_EQ(Put(TestCanary(1, 120)), PutOutcome::kStored);
  EXPECT_EQ(Put(TestChunk(1, TestStream(0), 2)), PutOutcome::kStored);
  EXPECT_EQ(Put(TestCanary(3, 180)), PutOutcome::kStored);
  EXPECT_FALSE(IsThere(0));
  EXPECT_FALSE(IsThere(1));
  EXPECT_TRUE(IsThere(2));
  EXPECT_TRUE(IsThere(3));
  EXPECT_EQ(reader().Streams()->front().chunks, 1u);
}

TEST_F(CanaryTest, AStreamOfCanariesAloneHasACursor) {
  EXPECT_EQ(Put(TestCanary(0, 60)), PutOutcome::kStored);
  const auto cursors = store_->chunks().Cursors(TestCaptureId(1), "agent-a");
  ASSERT_EQ(cursors->size(), 1u);
  EXPECT_EQ(cursors->front().next_sequence, 1u);
}

}  // namespace
}  // namespace neurontrace
