// SPDX-License-Identifier: Apache-2.0
// Goal: a capture reads the same from the store as from memory.
#include "aggregator/timeline/store_chunk_source.h"

#include <gtest/gtest.h>

#include "aggregator/store/store_test_support.h"
#include "aggregator/timeline/event_script.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {
namespace {

constexpr uint64_t kStoredBase = 1'750'000'000'000'000'000u;

class StoreChunkSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto store = Store::Open(directory_.path(), {.in_memory = true});
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    ASSERT_TRUE(store_->captures().Put(TestCapture(1), true).ok());
  }

  // Stores what the builder holds as the next chunk of a core.
  void Put(uint32_t nc_idx, uint64_t sequence) {
    const EncodedColumns columns = builder_.Finish();
    DecodedChunk decoded;
    ASSERT_TRUE(decoded.Decode(columns.bytes).ok());
    ReceivedChunk chunk = TestChunk(1, TestStream(nc_idx), sequence);
    chunk.header.event_count = columns.event_count;
    chunk.header.first_timestamp_ns = columns.first_timestamp_ns;
    chunk.header.last_timestamp_ns = columns.last_timestamp_ns;
    chunk.header.columns_bytes = static_cast<uint32_t>(columns.bytes.size());
    chunk.header.rank_evidence = {{RankSource::kCommunicator, nc_idx + 4, 8, "comm"}};
    chunk.columns = CompressColumns(columns.bytes);
    chunk.foreign_stops = finder_.Find(decoded);
    const auto results = store_->chunks().PutBatch({&chunk, 1});
    ASSERT_TRUE(results.ok()) << results.status();
    ASSERT_EQ(results->front().outcome, PutOutcome::kStored);
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Store> store_;
  EventChunkBuilder builder_;
  EventScript script_{builder_};
  ForeignStopFinder finder_;
};

TEST_F(StoreChunkSourceTest, ReadsSpansThatCrossChunksFromTheStore) {
  constexpr uint64_t kChunks = 100;  // more than one read of the index
  for (uint64_t sequence = 0; sequence < kChunks; ++sequence) {
    const uint64_t at = kStoredBase + sequence * 1'000;
    if (sequence > 0) script_.Stop("outer", at, sequence, 7);
    script_.Span("inner", at + 10, at + 20, sequence + 1);
    if (sequence + 1 < kChunks) script_.Start("outer", at + 30, sequence + 1, 7);
    Put(0, sequence);
  }
  script_.Span("other", kStoredBase + 5, kStoredBase + 6, 1);
  Put(1, 0);

  StoreChunkSource source(store_->OpenCapture(TestCaptureId(1)), TestCapture(1));
  auto reader = TimelineReader::Open(source, {});
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->capture().name, "capture 1");
  ASSERT_EQ((*reader)->streams().size(), 2u);
  EXPECT_EQ((*reader)->streams()[1].rank.label, "gid5");
  TimelineBatch batch;
  uint64_t outer = 0;
  while (true) {
    const auto more = (*reader)->Next(batch);
    ASSERT_TRUE(more.ok()) << more.status();
    if (!*more) break;
    for (const TimelineRecord* record : batch.records) {
      if (record->kind != RecordKind::kSpan || record->start().event_type != "outer") continue;
      EXPECT_EQ(record->end_ns - record->start_ns, 970u);
      ++outer;
    }
  }
  EXPECT_EQ(outer, kChunks - 1);
  EXPECT_EQ((*reader)->counts().spans, 2 * kChunks);
  EXPECT_EQ((*reader)->counts().open_spans, 0u);
  EXPECT_EQ((*reader)->counts().start_lost_spans, 0u);
}

TEST_F(StoreChunkSourceTest, ASnapshotReadsTheIndexOfEachStream) {
  for (uint64_t sequence = 0; sequence < 3; ++sequence) {
    for (const uint32_t stream : {0u, 1u}) {
      script_.Instant("at", kStoredBase + sequence * 100 + stream, 1, 7);
      Put(stream, sequence);
    }
  }
  StoreChunkSource source(store_->OpenSnapshot(TestCaptureId(1)), TestCapture(1));
  script_.Instant("late", kStoredBase + 1'000, 1, 7);
  Put(0, 3);
  std::vector<ChunkEntry> entries;
  const auto first_of = [&](uint32_t stream, uint64_t from_ns) {
    EXPECT_TRUE(source.ReadIndex(stream, {from_ns, 0}, 8, entries).ok());
    return entries.empty() ? 0 : entries.front().first_timestamp_ns - kStoredBase;
  };
  for (const uint32_t stream : {0u, 1u, 0u}) {
    EXPECT_EQ(first_of(stream, 0), stream);
    EXPECT_EQ(entries.size(), 3u) << "the chunk after the snapshot is not seen";
    EXPECT_EQ(first_of(stream, kStoredBase + 150), 200u + stream);
    EXPECT_EQ(entries.size(), 1u);
    first_of(stream, kStoredBase + 900);
    EXPECT_TRUE(entries.empty());
  }
}

TEST_F(StoreChunkSourceTest, TheIndexNamesTheEventTypesOfAChunk) {
  script_.Span("inner", kStoredBase, kStoredBase + 1, 1);
  script_.Stop("outer", kStoredBase + 2, 2, 7);
  Put(0, 0);
  script_.Instant(std::string(ForeignStops::kListedTypesBytesMax + 1, 'x'), kStoredBase + 3, 3, 7);
  Put(0, 1);
  StoreChunkSource source(store_->OpenCapture(TestCaptureId(1)), TestCapture(1));
  std::vector<ChunkEntry> entries;
  ASSERT_TRUE(source.ReadIndex(0, {}, 8, entries).ok());
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].event_types, (std::vector<std::string>{"inner", "outer"}));
  ASSERT_EQ(entries[0].foreign_stops.size(), 1u);
  EXPECT_EQ(entries[0].foreign_stops[0].type_hash, HashEventType("outer"));
  EXPECT_EQ(entries[1].event_types, std::nullopt) << "more types than the index lists";
}

TEST_F(StoreChunkSourceTest, AChunkThatIsNotThereIsNotFound) {
  StoreChunkSource source(store_->OpenCapture(TestCaptureId(1)), TestCapture(1));
  std::string columns;
  EXPECT_EQ(source.ReadColumns(0, 0, columns).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace neurontrace
