// SPDX-License-Identifier: Apache-2.0
// Goal: a canary moves its stream's cursor and nothing that anybody reads or counts, and a store
// holds one of them a stream.
#include <gtest/gtest.h>

#include "aggregator/store/store_test_support.h"

namespace neurontrace {
namespace {

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
