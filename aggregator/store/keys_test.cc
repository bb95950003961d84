// SPDX-License-Identifier: Apache-2.0
// Keys sort as what they name, keep their bytes, and are read back.
#include "aggregator/store/keys.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "aggregator/store/store_test_support.h"

namespace neurontrace::keys {
namespace {

TEST(Keys, AreTheBytesOfTheFormat) {
  const CaptureId id = TestCaptureId(7);
  EXPECT_EQ(Chunk(id, 0x01020304, 0x05060708090a0b0c),
            fmt::format("{}{}", id.bytes(), "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c"));
  EXPECT_EQ(ChunkIndex(id, 1, 2, 3), std::string(id.bytes()) + std::string("\0\0\0\1", 4) +
                                         std::string("\0\0\0\0\0\0\0\2", 8) +
                                         std::string("\0\0\0\0\0\0\0\3", 8));
  EXPECT_EQ(Worker({.instance_id = "i-1", .boot_id = "b", .pid = 5, .start_time_ticks = 6}),
            std::string("\0\3i-1\0\1b\0\0\0\5\0\0\0\0\0\0\0\6\0\0", 22));
}

TEST(Keys, SortByWhatTheyName) {
  const CaptureId a = TestCaptureId(1);
  const CaptureId b = TestCaptureId(2);
  EXPECT_LT(Chunk(a, 0, 255), Chunk(a, 0, 256));
  EXPECT_LT(Chunk(a, 255, 9), Chunk(a, 256, 0));
  EXPECT_LT(Chunk(a, UINT32_MAX, UINT64_MAX), Chunk(b, 0, 0));
  EXPECT_LT(ChunkIndex(a, 0, 10, 5), ChunkIndex(a, 0, 11, 4));
}

TEST(Keys, AreReadBack) {
  const CaptureId id = TestCaptureId(3);
  const auto chunk = ParseChunk(Chunk(id, 17, 1ull << 40));
  ASSERT_TRUE(chunk);
  EXPECT_EQ(chunk->capture, id);
  EXPECT_EQ(chunk->stream, 17u);
  EXPECT_EQ(chunk->sequence, 1ull << 40);
  const auto index = ParseChunkIndex(ChunkIndex(id, 18, 19, 20));
  ASSERT_TRUE(index);
  EXPECT_EQ(index->stream, 18u);
  EXPECT_EQ(index->last_timestamp_ns, 19u);
  EXPECT_EQ(index->sequence, 20u);
  EXPECT_EQ(ParseStream(Stream(id, 21))->stream, 21u);
  const auto model = ParseClockModel(ClockModel(id, 22, 23));
  ASSERT_TRUE(model);
  EXPECT_EQ(model->capture, id);
  EXPECT_EQ(model->version, 22u);
  EXPECT_EQ(model->row, 23u);
  const auto digest = ParseDigest(Digest(id, 24, 3, 25));
  ASSERT_TRUE(digest);
  EXPECT_EQ(digest->capture, id);
  EXPECT_EQ(digest->stream, 24u);
  EXPECT_EQ(digest->level, 3u);
  EXPECT_EQ(digest->first, 25u);
}

TEST(Keys, RejectsOtherLengths) {
  EXPECT_FALSE(ParseStream("short"));
  EXPECT_FALSE(ParseChunk(Stream(TestCaptureId(1), 1)));
  EXPECT_FALSE(ParseClockModel(Stream(TestCaptureId(1), 1)));
  EXPECT_FALSE(ParseDigest(Chunk(TestCaptureId(1), 1, 1)));
  EXPECT_FALSE(ParseChunkIndex(Chunk(TestCaptureId(1), 1, 1)));
}

TEST(Keys, EndOfAPrefixIsBehindEverythingWithIt) {
  EXPECT_EQ(PrefixEnd("ab"), "ac");
  EXPECT_EQ(PrefixEnd("a\xff"), "b");
  // Nothing is behind all keys with this one, but something behind the longest of a capture.
  const std::string capture(16, '\xff');
  const std::string longest(36, '\xff');
  EXPECT_EQ(ParseChunkIndex(longest)->sequence, UINT64_MAX);
  EXPECT_GT(PrefixEnd(capture), longest);
  EXPECT_GT(PrefixEnd(capture + std::string(4, '\xff')), longest);
}

}  // namespace
}  // namespace neurontrace::keys
