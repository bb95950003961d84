// SPDX-License-Identifier: Apache-2.0
// Goal: what a chunk becomes when it is read is bounded, however small it came, and whatever a
// builder makes passes. Method: columns by hand at the limits; builders filled until they refuse.
#include "lib/trace/chunk_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/fuzz_seed.h"
#include "lib/trace/chunk_limits.h"
#include "lib/trace/event_chunk.h"
#include "lib/trace/event_chunk_test_support.h"
#include "lib/trace/raw_columns_test_support.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

constexpr size_t kLong = limits::kStringBytesMax;

absl::Status Decode(const RawColumns& columns) {
  DecodedChunk chunk;
  const std::string bytes = columns.Bytes();
  const absl::Status status = chunk.Decode(bytes);
  EXPECT_EQ(chunk.size() == 0, !status.ok());
  return status;
}

// String 0 is empty, string 1 as long as one may be.
RawColumns OneEvent() {
  RawColumns columns;
  columns.strings = {"", std::string(kLong, 'x')};
  columns.shapes = {{}};
  columns.events = {{}};
  return columns;
}

TEST(ChunkTextTest, RefusesStringsOverTheLimit) {
  RawColumns columns = OneEvent();
  columns.strings.resize(1 + limits::kChunkStringBytesMax / kLong, columns.strings.back());
  EXPECT_TRUE(Decode(columns).ok()) << Decode(columns);  // exactly as many
  columns.strings.front() = "x";
  EXPECT_THAT(std::string(Decode(columns).message()),
              HasSubstr("the strings have 4194305 bytes; the limit is 4194304"));
}

TEST(ChunkTextTest, RefusesNamesOverTheLimitAlsoOfShapesWithoutEvents) {
  constexpr size_t kShapes = limits::kChunkNameBytesMax / (64 * kLong);
  RawColumns columns = OneEvent();
  for (size_t i = 0; i < kShapes; ++i) {
    columns.shapes.push_back({.keys = std::vector<RawKey>(64, {.name = 1})});
  }
  EXPECT_TRUE(Decode(columns).ok()) << Decode(columns);  // exactly as many
  columns.shapes.front().event_type = 1;
  EXPECT_THAT(std::string(Decode(columns).message()),
              HasSubstr("the names of all shapes have 4259840 bytes; the limit is 4194304"));
}

TEST(ChunkTextTest, RefusesTextsOverTheLimit) {
  for (const ValueType type : {ValueType::kString, ValueType::kJson}) {
    RawColumns columns = OneEvent();
    const RawKey key{.name = 0, .type = type, .value = 1};
    columns.shapes.front().keys = std::vector<RawKey>(64, key);
    columns.events.resize(limits::kChunkTextBytesMax / (64 * kLong));
    EXPECT_TRUE(Decode(columns).ok()) << Decode(columns);
    columns.events.emplace_back();
    EXPECT_THAT(std::string(Decode(columns).message()),
                HasSubstr("the names and texts of all events have 71303168 bytes; the limit"));
  }
}

TEST(ChunkTextTest, CountsNamesOnceAnEvent) {
  RawColumns columns = OneEvent();
  columns.shapes.front().event_type = 1;
  columns.shapes.front().keys = {{.name = 1}};
  columns.events.resize(limits::kChunkTextBytesMax / (2 * kLong));
  EXPECT_TRUE(Decode(columns).ok()) << Decode(columns);
  columns.events.emplace_back();
  EXPECT_FALSE(Decode(columns).ok());
}

// The longest text and the most events together would be too much; but not one refers to it.
TEST(ChunkTextTest, CountsOnlyWhatIsReferredTo) {
  RawColumns columns = OneEvent();
  columns.shapes.front().keys = {{.name = 0, .type = ValueType::kString, .value = 0}};
  columns.events.resize(limits::kChunkEventsMax);
  EXPECT_TRUE(Decode(columns).ok()) << Decode(columns);
}

TEST(ChunkTextTest, BuilderClosesBeforeTooManyNames) {
  EventChunkBuilder builder;
  const std::string name(32 << 10, 'k');
  uint32_t shapes = 0;
  absl::Status status;
  while (status.ok()) {
    const std::string type = std::to_string(shapes);
    Shape shape{.event_type = type, .keys = std::vector<ShapeKey>(60, {.name = name})};
    const auto id = builder.InternShape(shape);
    status = id.ok() ? builder.Append(*id, {}, std::vector<AttributeValue>(60)) : id.status();
    shapes += status.ok();
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(shapes, 2u);
  DecodedChunk chunk;
  const EncodedColumns encoded = builder.Finish();
  EXPECT_TRUE(chunk.Decode(encoded.bytes).ok());
  EXPECT_EQ(chunk.size(), 2u);
}

TEST(ChunkTextTest, BuilderClosesBeforeTooMuchTextAndThenTakesTheEvent) {
  EventChunkBuilder builder;
  OwnedEvent event{.event_type = "e", .keys = {{"text", ValueType::kString}}};
  event.values = {{0, std::string(kLong, 'x')}};
  uint32_t events = 0;
  absl::Status status;
  for (; status.ok(); events += status.ok()) status = AppendTo(builder, event);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(events, limits::kChunkTextBytesMax / (kLong + 5));
  DecodedChunk chunk;
  const EncodedColumns encoded = builder.Finish();
  EXPECT_TRUE(chunk.Decode(encoded.bytes).ok());
  EXPECT_EQ(chunk.size(), events);
  EXPECT_TRUE(AppendTo(builder, event).ok());
}

// Not a test: see lib/base/fuzz_seed.h. As frames, which the fuzzer takes behind their size.
TEST(ChunkTextTest, WritesFuzzCorpusOnRequest) {
  NT_SKIP_UNLESS_FUZZ_SEEDS_ARE_WANTED();
  const auto write = [](const std::string& name, const RawColumns& columns) {
    const std::string bytes = columns.Bytes();
    const auto size = static_cast<uint32_t>(bytes.size());
    WriteFuzzSeed("chunk_decode_fuzzer", name,
                  "\x01" + std::string(reinterpret_cast<const char*>(&size), sizeof(size)) +
                      CompressColumns(bytes));
  };
  RawColumns names = OneEvent();
  names.shapes.push_back({.keys = std::vector<RawKey>(64, {.name = 1})});
  write("names_at_their_limit", names);
  RawColumns many = OneEvent();  // an event names its shape with two bytes
  many.shapes.resize(300);
  many.shapes.back().keys = {{.name = 1, .type = ValueType::kJson, .value = 1}};
  many.events = {{1, 0}, {2, 299}, {2, 256}};
  write("shapes_without_events", many);
  RawColumns texts = OneEvent();
  texts.shapes.front().keys =
      std::vector<RawKey>(64, {.name = 0, .type = ValueType::kString, .value = 1});
  texts.events.resize(16);
  write("texts_at_their_limit", texts);
}

}  // namespace
}  // namespace neurontrace
