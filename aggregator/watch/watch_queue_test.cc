// SPDX-License-Identifier: Apache-2.0
// Goal: the thread that stores chunks never waits, memory is bounded, and what is dropped is seen.
#include "aggregator/watch/watch_queue.h"

#include <gtest/gtest.h>

#include "lib/trace/watch_limits.h"

namespace neurontrace {
namespace {

WatchedChunk ChunkOf(uint64_t sequence, size_t bytes) {
  WatchedChunk chunk;
  chunk.header.sequence = sequence;
  chunk.columns = std::string(bytes, 'x');
  return chunk;
}

TEST(WatchQueue, KeepsTheHeadersOfWhatItHasNoRoomFor) {
  WatchQueue queue;
  queue.Push(ChunkOf(0, limits::kWatchQueueBytesMax));
  queue.Push(ChunkOf(1, 1));
  EXPECT_EQ(queue.dropped(), 1u);
  auto taken = queue.Take(1, std::chrono::seconds(0));
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_FALSE(taken[0].is_cut);
  queue.Push(ChunkOf(2, limits::kWatchQueueBytesMax));
  taken = queue.Take(10, std::chrono::seconds(0));
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_TRUE(taken[0].is_cut);
  EXPECT_EQ(taken[0].header.sequence, 1u);
  EXPECT_TRUE(taken[0].columns.empty());
  EXPECT_FALSE(taken[1].is_cut);
}

TEST(WatchQueue, HoldsNoMoreChunksThanItsLimit) {
  WatchQueue queue;
  for (size_t i = 0; i < limits::kWatchQueueChunksMax + 2; ++i) queue.Push(ChunkOf(i, 0));
  EXPECT_EQ(queue.size(), limits::kWatchQueueChunksMax);
  EXPECT_EQ(queue.dropped(), 2u);
}

TEST(WatchQueue, DoesNotWaitOnceItIsClosed) {
  WatchQueue queue;
  queue.Close();
  EXPECT_TRUE(queue.Take(1, std::chrono::hours(1)).empty());
  EXPECT_TRUE(queue.is_closed());
}

}  // namespace
}  // namespace neurontrace
