// SPDX-License-Identifier: Apache-2.0
// What has expired goes, and nothing else: by the stamps of events, by the order in which chunks
// came, through holes, reopening and damage. Accounts close after every step.
#include "aggregator/store/chunk_trim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "aggregator/store/database.h"
#include "aggregator/store/keys.h"
#include "aggregator/store/store.h"
#include "aggregator/store/store_test_support.h"
#include "aggregator/store/store_usage.h"
#include "lib/trace/expiry.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint32_t kStream = 0;

// A producer that keeps the account of its stream.
class Producer {
 public:
  explicit Producer(uint32_t nc_idx = 0) : stream_(TestStream(nc_idx)) {}

  ReceivedChunk Next() { return Next(sequence_ * 1'000 + 5); }
  ReceivedChunk Next(uint64_t first_timestamp_ns) {
    ReceivedChunk chunk = TestChunk(1, stream_, sequence_++);
    chunk.header.first_timestamp_ns = first_timestamp_ns;
    chunk.header.last_timestamp_ns = first_timestamp_ns + 1'000;
    chunk.header.events_before = events_;
    events_ += chunk.header.event_count;
    return chunk;
  }
  ReceivedChunk Empty() {
    ReceivedChunk chunk = TestChunk(1, stream_, sequence_++);
    chunk.header.event_count = 0;
    chunk.header.first_timestamp_ns = chunk.header.last_timestamp_ns = 0;
    chunk.header.columns_bytes = 0;
    chunk.header.events_before = events_;
    chunk.columns.clear();
    return chunk;
  }
  ReceivedChunk Canary(uint64_t realtime_ns) {
    ReceivedChunk chunk = Empty();
    chunk.header.canary_realtime_ns = realtime_ns;
    return chunk;
  }
  void Skip(uint64_t chunks, uint64_t events) {
    sequence_ += chunks;
    events_ += events;
  }

 private:
  const StreamIdentity stream_;
  uint64_t sequence_ = 0;
  uint64_t events_ = 0;
};

class ChunkTrimTest : public ::testing::Test {
 protected:
  ChunkTrimTest() {
    Open();
    EXPECT_TRUE(store_->captures().Put(TestCapture(1), true).ok());
  }

  void Open() {
    store_.reset();
    auto store = Store::Open(directory_.path(), {});
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = std::move(store).value();
  }
  void Put(const ReceivedChunk& chunk) {
    const auto results = store_->chunks().PutBatch({&chunk, 1});
    ASSERT_TRUE(results.ok()) << results.status();
    ASSERT_EQ(results->front().outcome, PutOutcome::kStored);
  }
  void PutChunks(int count) {
    for (int i = 0; i < count; ++i) Put(producer_.Next());
  }
  Trimmed Trim(const TrimRequest& request) {
    const auto trimmed = store_->chunks().Trim(TestCaptureId(1), kStream, request);
    EXPECT_TRUE(trimmed.ok()) << trimmed.status();
    EXPECT_TRUE(Record().Conserved());
    // What is counted in memory is what a reader finds.
    EXPECT_EQ(StoreUsage(*store_).CaptureBytes(TestCaptureId(1)).value(), Record().bytes);
    return trimmed.value_or(Trimmed{});
  }
  StreamRecord Record() { return Reader().Streams().value().at(0); }
  CaptureReader Reader() { return store_->OpenCapture(TestCaptureId(1)); }
  std::vector<uint64_t> Indexed() {
    std::vector<uint64_t> sequences;
    ChunkIndexIterator it = Reader().Stream(kStream).Index();
    for (; it.Valid(); it.Next()) sequences.push_back(it.entry().sequence);
    EXPECT_TRUE(it.status().ok()) << it.status();
    return sequences;
  }
  bool IsThere(uint64_t sequence) {
    StoredChunk chunk;
    const absl::Status status = Reader().Stream(kStream).ReadChunk(sequence, chunk);
    EXPECT_TRUE(status.ok() || absl::IsNotFound(status)) << status;
    return status.ok();
  }

  const TemporaryDirectory directory_;
  std::unique_ptr<Store> store_;
  Producer producer_;
};

TEST_F(ChunkTrimTest, TrimsAndCountsOlderChunks) {
  PutChunks(10);
  const uint64_t bytes = Record().bytes;
  const Trimmed trimmed = Trim({.before_raw_ns = 4'006});
  EXPECT_EQ(trimmed.chunks, 4u);
  EXPECT_EQ(trimmed.events, 40u);
  EXPECT_FALSE(trimmed.can_remove_more);
  for (const bool reopened : {false, true}) {
    if (reopened) Open();
    const StreamRecord record = Record();
    EXPECT_EQ(record.first_sequence, 4u);
    EXPECT_EQ(record.next_sequence, 10u);  // delivery continues where it was
    EXPECT_EQ(record.chunks, 6u);
    EXPECT_EQ(record.events, 60u);
    EXPECT_EQ(record.captured, 100u);
    EXPECT_EQ(record.bytes + trimmed.bytes, bytes);
    EXPECT_EQ(record.expired_chunks, 4u);
    EXPECT_EQ(record.expired_bytes, trimmed.bytes);
    EXPECT_EQ(record.events_expired(), 40u);
    EXPECT_EQ(record.events_lost(), 0u);
    EXPECT_EQ(record.first_timestamp_ns, 4'005u);
    ASSERT_EQ(record.losses.size(), 1u);
    EXPECT_TRUE(IsExpiry(record.losses[0]));
    EXPECT_EQ(record.losses[0].first_timestamp_ns, 5u);
    EXPECT_EQ(record.losses[0].last_timestamp_ns, 4'005u);
    EXPECT_THAT(Indexed(), ElementsAre(4, 5, 6, 7, 8, 9));
    EXPECT_FALSE(IsThere(3));
    EXPECT_TRUE(IsThere(4));
  }
  Put(producer_.Next());
  EXPECT_EQ(Record().events, 70u);
}

TEST_F(ChunkTrimTest, NothingIsOldNothingIsWritten) {
  PutChunks(3);
  const StreamRecord before = Record();
  EXPECT_EQ(Trim({.before_raw_ns = 1'005}).chunks, 0u);
  EXPECT_EQ(Trim({}).chunks, 0u);
  EXPECT_EQ(Record(), before);
}

TEST_F(ChunkTrimTest, StepIsBoundedAndResumable) {
  PutChunks(10);
  const TrimRequest request{.before_raw_ns = 8'006, .chunks_max = 3};
  Trimmed sum = Trim(request);
  EXPECT_TRUE(sum.can_remove_more);
  EXPECT_THAT(Indexed(), ElementsAre(3, 4, 5, 6, 7, 8, 9));
  Open();
  while (sum.can_remove_more) sum.Add(Trim(request));
  EXPECT_EQ(sum.chunks, 8u);
  EXPECT_EQ(Record().events_expired(), 80u);
  EXPECT_EQ(Trim(request).chunks, 0u);
}

TEST_F(ChunkTrimTest, EndsWithTheChunkThatMakesEnoughBytes) {
  PutChunks(10);
  const uint64_t each = Record().bytes / 10;
  const Trimmed trimmed = Trim({.before_raw_ns = 100'000, .bytes_max = 2 * each + 1});
  EXPECT_EQ(trimmed.chunks, 3u);
  EXPECT_FALSE(trimmed.can_remove_more);
}

TEST_F(ChunkTrimTest, TrimsWholeStreamThatContinues) {
  PutChunks(3);
  Trim({.before_raw_ns = 1'000'000});
  EXPECT_EQ(Record().events, 0u);
  EXPECT_EQ(Record().bytes, 0u);
  EXPECT_THAT(Indexed(), IsEmpty());
  EXPECT_EQ(store_->chunks().Cursors(TestCaptureId(1), "agent-a").value().at(0).next_sequence, 3u);
  PutChunks(1);
  EXPECT_EQ(Record().first_timestamp_ns, 3'005u);
  EXPECT_EQ(Record().events, 10u);
  EXPECT_TRUE(Record().Conserved());
}

TEST_F(ChunkTrimTest, HolesCanariesAndChunksWithoutEventsAreNoObstacle) {
  PutChunks(2);                             // 0, 1
  Put(producer_.Empty());                   // 2
  Put(producer_.Canary(77));                // 3
  PutChunks(1);                             // 4
  producer_.Skip(2, 15);                    // 5, 6 never come
  ReceivedChunk behind = producer_.Next();  // 7
  behind.gone_before = PrecedingGap{LossPlace::kSpool, LossReason::kFull};
  Put(behind);
  Put(producer_.Canary(78));  // 8
  producer_.Skip(1'000, 0);
  ReceivedChunk far = producer_.Next();  // 1009
  far.gone_before = PrecedingGap{LossPlace::kSpool, LossReason::kFull};
  Put(far);
  EXPECT_EQ(Trim({.before_raw_ns = 8'006}).chunks, 5u);
  EXPECT_EQ(Record().first_sequence, 8u);
  EXPECT_FALSE(IsThere(2));
  EXPECT_TRUE(IsThere(8));
  EXPECT_EQ(Trim({.before_raw_ns = 2'000'000}).chunks, 1u);
  EXPECT_EQ(Record().chunks, 0u);
  EXPECT_EQ(Record().events_expired(), 50u);
  EXPECT_EQ(Record().events_lost(), 15u);
  EXPECT_FALSE(IsThere(8));
}

TEST_F(ChunkTrimTest, KeepsChunksBeforeNewerEvents) {
  PutChunks(2);
  Put(producer_.Next(50'000));  // a host's clock was ahead
  PutChunks(3);
  EXPECT_EQ(Trim({.before_raw_ns = 10'000}).chunks, 2u);
  EXPECT_THAT(Indexed(), ElementsAre(3, 4, 5, 2));
  EXPECT_EQ(Record().first_timestamp_ns, 3'005u);
  // By the order in which they came.
  EXPECT_EQ(Trim({.before_sequence = 4}).chunks, 2u);
  EXPECT_THAT(Indexed(), ElementsAre(4, 5));
  EXPECT_EQ(Record().first_timestamp_ns, 4'005u);
  EXPECT_EQ(Trim({.before_sequence = 4'000}).chunks, 2u);
  EXPECT_EQ(Record().first_sequence, 6u);
}

TEST_F(ChunkTrimTest, AnOldChunkThatComesLateGoesTheNextTime) {
  PutChunks(5);
  Trim({.before_raw_ns = 4'006});
  Put(producer_.Next(2'000));
  EXPECT_EQ(Record().first_timestamp_ns, 2'000u);
  EXPECT_EQ(Trim({.before_raw_ns = 4'006}).chunks, 0u);  // chunk 4 came before it
  EXPECT_EQ(Trim({.before_raw_ns = 5'006}).chunks, 2u);
}

TEST_F(ChunkTrimTest, ProducerCannotHideLossAsExpiry) {
  PutChunks(1);
  ReceivedChunk chunk = producer_.Next();
  chunk.header.losses = {
      {.place = LossPlace::kRetention, .reason = LossReason::kExpired, .events = 5}};
  Put(chunk);
  EXPECT_EQ(Record().events_expired(), 0u);
  EXPECT_EQ(Record().events_lost(), 5u);
}

TEST_F(ChunkTrimTest, SnapshotReaderMissesNothing) {
  PutChunks(4);
  const CaptureReader snapshot = store_->OpenSnapshot(TestCaptureId(1));
  Trim({.before_raw_ns = 1'000'000});
  EXPECT_EQ(snapshot.Streams().value().at(0).events, 40u);
  StoredChunk chunk;
  EXPECT_TRUE(snapshot.Stream(kStream).ReadChunk(0, chunk).ok());
  ChunkIndexIterator it = snapshot.Stream(kStream).Index();
  EXPECT_TRUE(it.Valid());
  EXPECT_EQ(it.entry().sequence, 0u);
  EXPECT_FALSE(IsThere(0));
}

TEST_F(ChunkTrimTest, UsageIsThatOfEachCapture) {
  ASSERT_TRUE(store_->captures().Put(TestCapture(2), true).ok());
  PutChunks(3);
  const ReceivedChunk chunk = TestChunk(2, TestStream(0), 0);
  ASSERT_TRUE(store_->chunks().PutBatch({&chunk, 1}).ok());
  for (const bool reopened : {false, true}) {
    if (reopened) Open();
    const StoreUsage usage(*store_);
    EXPECT_EQ(usage.CaptureBytes(TestCaptureId(1)).value(), Record().bytes);
    EXPECT_EQ(usage.CaptureBytes(TestCaptureId(2)).value(), chunk.bytes());
    EXPECT_GT(usage.FreeBytes().value(), 0u);
  }
  ASSERT_TRUE(store_->DeleteCapture(TestCaptureId(2)).ok());
  EXPECT_EQ(StoreUsage(*store_).CaptureBytes(TestCaptureId(2)).value(), 0u);
}

TEST_F(ChunkTrimTest, AnEntryOfAChunkThatIsLongGoneIsPassedOver) {
  PutChunks(4);
  EXPECT_EQ(Trim({.before_sequence = 2}).chunks, 2u);
  store_.reset();
  {
    const auto database = Database::Open(directory_.path(), nullptr).value();
    std::string value;
    ASSERT_TRUE(database
                    ->ForEach(Family::kChunkIndex, keys::Stream(TestCaptureId(1), kStream),
                              [&](std::string_view, std::string_view entry) {
                                value = std::string(entry);
                                return absl::OkStatus();
                              })
                    .ok());
    const std::string orphan = keys::ChunkIndex(TestCaptureId(1), kStream, 3'004, 0);
    ASSERT_TRUE(database->Put(Family::kChunkIndex, orphan, value, true).ok());
  }
  Open();
  const Trimmed rest = Trim({.before_raw_ns = 1'000'000});
  EXPECT_EQ(rest.chunks, 2u);
  EXPECT_EQ(Record().first_sequence, 4u);
  EXPECT_EQ(Record().expired_chunks, 4u);
}

TEST_F(ChunkTrimTest, DamageInDeletedDataDoesNotBlock) {
  constexpr uint64_t kChunks = 4'000;
  std::vector<ReceivedChunk> chunks;
  for (uint64_t i = 0; i < kChunks; ++i) chunks.push_back(producer_.Next());
  ASSERT_TRUE(store_->chunks().PutBatch(chunks).ok());
  store_.reset();
  std::string file;
  uint64_t file_bytes = 0;
  {
    const auto database = Database::Open(directory_.path(), nullptr).value();
    rocksdb::ColumnFamilyHandle* const family = database->family(Family::kChunks);
    ASSERT_TRUE(database->db().Flush({}, family).ok());
    for (uint64_t sequence = 1; sequence + 1 < kChunks; ++sequence) {
      const std::string key = keys::Chunk(TestCaptureId(1), kStream, sequence);
      ASSERT_TRUE(database->db().Delete({}, family, key).ok());
    }
    std::vector<rocksdb::LiveFileMetaData> files;
    database->db().GetLiveFilesMetaData(&files);
    for (const rocksdb::LiveFileMetaData& live : files) {
      if (live.column_family_name != family->GetName() || live.size < file_bytes) continue;
      file = live.db_path + live.name;
      file_bytes = live.size;
    }
  }
  ASSERT_FALSE(file.empty());
  Open();  // which looks at its files
  {
    std::fstream table(file, std::ios::in | std::ios::out | std::ios::binary);
    table.seekg(static_cast<std::streamoff>(file_bytes / 3));
    const char byte = static_cast<char>(table.get());
    table.seekp(static_cast<std::streamoff>(file_bytes / 3));
    table.put(static_cast<char>(byte ^ 0x5a));
  }
  // The producer's sums of those that are gone are not checked here.
  uint64_t steps = 0;
  for (bool can_remove_more = true; can_remove_more; ++steps) {
    const auto step =
        store_->chunks().Trim(TestCaptureId(1), kStream, {.before_sequence = kChunks});
    ASSERT_TRUE(step.ok()) << step.status();
    can_remove_more = step->can_remove_more;
    ASSERT_LT(steps, 100u);
  }
  EXPECT_EQ(Record().first_sequence, kChunks);
}

TEST_F(ChunkTrimTest, OneThatHasEndedMeanwhileStaysAsItIs) {
  PutChunks(3);
  CaptureRecord ended = TestCapture(1);
  ended.state = CaptureState::kComplete;
  ASSERT_TRUE(store_->captures().Put(ended, true).ok());
  store_->chunks().Forget(ended.id);
  EXPECT_EQ(Trim({.before_sequence = 2}).chunks, 0u);
  EXPECT_EQ(Record().first_sequence, 0u);
}

}  // namespace
}  // namespace neurontrace
