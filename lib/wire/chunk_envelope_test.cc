// SPDX-License-Identifier: Apache-2.0
// Goal: an envelope is taken only when all of it is true. Method: one true envelope, and it again
// with one thing wrong each.
#include "lib/wire/chunk_envelope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "lib/base/crc32c.h"
#include "lib/base/fuzz_seed.h"
#include "lib/trace/limits.h"
#include "lib/wire/wire_test_support.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

v1::ChunkEnvelope EnvelopeOf(Chunk chunk) {
  v1::ChunkEnvelope envelope;
  ToEnvelope(std::move(chunk), 9, &envelope);
  return envelope;
}

void Sign(v1::ChunkEnvelope& envelope) {
  const uint32_t header = Crc32c(envelope.header().data(), envelope.header().size());
  envelope.set_crc32c(ExtendCrc32c(header, envelope.columns().data(), envelope.columns().size()));
}

void ExpectRefused(const v1::ChunkEnvelope& envelope, const std::string& message) {
  ChunkValidator validator;
  const auto header = validator.Validate(envelope);
  EXPECT_TRUE(absl::IsInvalidArgument(header.status())) << header.status();
  EXPECT_THAT(std::string(header.status().message()), HasSubstr(message));
  EXPECT_EQ(validator.chunk().size(), 0u);
}

// The chunk after `change` of its header.
void ExpectHeaderRefused(const std::function<void(ChunkHeader&)>& change,
                         const std::string& message) {
  Chunk chunk = SomeChunk();
  change(chunk.header);
  ExpectRefused(EnvelopeOf(std::move(chunk)), message);
}

TEST(ChunkEnvelopeTest, AcceptsValidEnvelope) {
  const Chunk chunk = SomeChunk();
  const v1::ChunkEnvelope envelope = EnvelopeOf(chunk);
  EXPECT_EQ(envelope.stream_ref(), 9u);
  const auto header = ParseEnvelopeHeader(envelope);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(*header, chunk.header);

  ChunkValidator validator;
  for (int again = 0; again < 2; ++again) {
    const auto validated = validator.Validate(envelope);
    ASSERT_TRUE(validated.ok()) << validated.status();
    EXPECT_EQ(*validated, chunk.header);
    ASSERT_EQ(validator.chunk().size(), 2u);
    EXPECT_EQ(validator.chunk().timestamp_ns()[1], 2000u);
    EXPECT_EQ(validator.chunk().value(1, 0).text, "model");
  }
}

TEST(ChunkEnvelopeTest, TakesAChunkWithoutEvents) {
  Chunk chunk = SomeChunk();
  chunk.columns.clear();
  chunk.header.event_count = chunk.header.columns_bytes = 0;
  chunk.header.first_timestamp_ns = chunk.header.last_timestamp_ns = 0;
  ChunkValidator validator;
  EXPECT_TRUE(validator.Validate(EnvelopeOf(chunk)).ok());
  EXPECT_EQ(validator.chunk().size(), 0u);
  chunk.header.last_timestamp_ns = 5;
  ExpectRefused(EnvelopeOf(chunk), "it has times up to 5 but no events");
}

TEST(ChunkEnvelopeTest, RefusesAnyFlippedBit) {
  const v1::ChunkEnvelope envelope = EnvelopeOf(SomeChunk());
  for (size_t bit = 0; bit < envelope.header().size() * 8; ++bit) {
    v1::ChunkEnvelope flipped = envelope;
    (*flipped.mutable_header())[bit / 8] ^= static_cast<char>(1 << bit % 8);
    ExpectRefused(flipped, "checksum");
  }
  for (size_t bit = 0; bit < envelope.columns().size() * 8; ++bit) {
    v1::ChunkEnvelope flipped = envelope;
    (*flipped.mutable_columns())[bit / 8] ^= static_cast<char>(1 << bit % 8);
    ExpectRefused(flipped, "checksum");
  }
}

TEST(ChunkEnvelopeTest, ChecksTheChecksumOverBothPartsInOrder) {
  v1::ChunkEnvelope envelope = EnvelopeOf(SomeChunk());
  v1::ChunkEnvelope swapped;
  swapped.set_header(envelope.columns());
  swapped.set_columns(envelope.header());
  swapped.set_crc32c(envelope.crc32c());
  ExpectRefused(swapped, "checksum");
  Sign(swapped);
  ExpectRefused(swapped, "header");
}

TEST(ChunkEnvelopeTest, ReportsChunkAndMismatch) {
  ExpectHeaderRefused([](ChunkHeader& h) { h.event_count = 3; }, "chunk 7 of i-0abc pid 4711");
  ExpectHeaderRefused([](ChunkHeader& h) { h.event_count = 3; },
                      "its header gives 3 events, but its columns have 2");
  ExpectHeaderRefused([](ChunkHeader& h) { h.event_count = 0; }, "it has columns but no events");
  ExpectHeaderRefused([](ChunkHeader& h) { h.first_timestamp_ns = 999; },
                      "its header gives times 999 to 2000, but its columns have 1000 to 2000");
  ExpectHeaderRefused([](ChunkHeader& h) { h.last_timestamp_ns = 2001; }, "times 1000 to 2001");
  ExpectHeaderRefused([](ChunkHeader& h) { h.first_timestamp_ns = 2001; }, "is later than");
  ExpectHeaderRefused([](ChunkHeader& h) { h.columns_bytes += 1; }, "zstd frame");
  ExpectHeaderRefused([](ChunkHeader& h) { h.columns_bytes = limits::kChunkColumnsBytesMax + 1; },
                      "header.columns_bytes");
  ExpectHeaderRefused([](ChunkHeader& h) { h.event_count = limits::kChunkEventsMax + 1; },
                      "header.event_count");
  ExpectHeaderRefused([](ChunkHeader& h) { h.clock_domain = ClockDomain::kUnspecified; },
                      "header.clock_domain");
  ExpectHeaderRefused([](ChunkHeader& h) { h.stream.kind = static_cast<StreamKind>(77); },
                      "stream.kind");
}

TEST(ChunkEnvelopeTest, RefusesColumnsThatAreNot) {
  Chunk chunk = SomeChunk();
  chunk.columns = CompressColumns("these are no columns");
  chunk.header.columns_bytes = 20;
  ExpectRefused(EnvelopeOf(chunk), "format version");
  chunk.columns = "nor is this a frame";
  ExpectRefused(EnvelopeOf(chunk), "zstd frame");
  chunk.columns.assign(limits::kChunkBytesMax + 1, 'x');
  ExpectRefused(EnvelopeOf(chunk), "the limit is");
}

TEST(ChunkEnvelopeTest, RefusesAHeaderThatIsTooLongToParse) {
  v1::ChunkEnvelope envelope;
  envelope.set_header(std::string(1 << 20, '\0'));
  Sign(envelope);
  ExpectRefused(envelope, "the chunk's header has 1048576 bytes");
  ExpectRefused({}, "header");
}

// Not a test: see lib/base/fuzz_seed.h.
TEST(ChunkEnvelopeTest, WritesFuzzCorpusOnRequest) {
  NT_SKIP_UNLESS_FUZZ_SEEDS_ARE_WANTED();
  const auto write = [](const std::string& name, const v1::ChunkEnvelope& envelope) {
    WriteFuzzSeed("chunk_envelope_fuzzer", name, envelope.SerializeAsString());
  };
  write("full", EnvelopeOf(SomeChunk()));
  Chunk bare = SomeChunk();
  bare.header.losses.clear();
  bare.header.rank_evidence.clear();
  bare.header.stream.worker.container_id.clear();
  write("bare", EnvelopeOf(bare));
  bare.columns.clear();
  bare.header.event_count = bare.header.columns_bytes = 0;
  bare.header.first_timestamp_ns = bare.header.last_timestamp_ns = 0;
  write("no_events", EnvelopeOf(bare));
}

}  // namespace
}  // namespace neurontrace
