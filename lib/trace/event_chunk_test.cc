// SPDX-License-Identifier: Apache-2.0
// Goal: whatever a builder takes comes back from a reader to the letter, in the order of time, and
// what no chunk may hold is refused. Method: seeded odd events against a plain copy of them, then
// each limit by itself.
#include "lib/trace/event_chunk.h"

#include <gtest/gtest.h>

#include <limits>

#include "lib/trace/event_chunk_test_support.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

void ExpectRoundTrip(EventChunkBuilder& builder, std::vector<OwnedEvent> events,
                     DecodedChunk& chunk) {
  ASSERT_EQ(builder.event_count(), events.size());
  const EncodedColumns encoded = builder.Finish();
  SortByTimestamp(events);
  EXPECT_EQ(encoded.event_count, events.size());
  EXPECT_EQ(encoded.first_timestamp_ns, events.front().fields.timestamp_ns);
  EXPECT_EQ(encoded.last_timestamp_ns, events.back().fields.timestamp_ns);

  const std::string compressed = CompressColumns(encoded.bytes);
  EXPECT_LE(compressed.size(), limits::kChunkBytesMax);
  std::string columns;
  ASSERT_TRUE(
      UncompressColumns(compressed, static_cast<uint32_t>(encoded.bytes.size()), columns).ok());
  ASSERT_EQ(columns, encoded.bytes);
  const absl::Status status = chunk.Decode(columns);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(chunk.size(), events.size());
  for (size_t i = 0; i < events.size(); ++i) {
    ASSERT_EQ(Difference(chunk, i, events[i]), "") << "event " << i;
  }
  ASSERT_TRUE(chunk.Decode(columns, DecodedChunk::Attributes::kSkip).ok());
  for (size_t i = 0; i < events.size(); ++i) {
    ASSERT_EQ(chunk.fields(i), Visible(events[i])) << "event " << i;
  }
}

// Appends as many as the chunk takes, at most `count`.
std::vector<OwnedEvent> Fill(EventChunkBuilder& builder, ExtremeEvents& source, size_t count) {
  std::vector<OwnedEvent> events;
  while (events.size() < count) {
    OwnedEvent event = source.Next();
    const absl::Status status = AppendTo(builder, event);
    if (absl::IsResourceExhausted(status)) break;
    EXPECT_TRUE(status.ok()) << status;
    events.push_back(std::move(event));
  }
  return events;
}

OwnedEvent Plain(uint64_t timestamp_ns) {
  OwnedEvent event;
  event.event_type = "nrt_execute";
  event.phase = Phase::kStart;
  event.present = FieldBit(Field::kTimestamp) | FieldBit(Field::kId);
  event.fields.timestamp_ns = timestamp_ns;
  event.fields.id = timestamp_ns + 7;
  return event;
}

TEST(EventChunkTest, RoundTripsEveryEvent) {
  EventChunkBuilder
      builder;  // the same ones for all: memory of one chunk must not leak into the next
  DecodedChunk chunk;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ExtremeEvents source(seed, 1 + static_cast<uint32_t>(seed * seed % 400));
    const size_t wanted = seed % 7 == 0 ? limits::kChunkEventsMax : 1 + source.Below(600);
    const std::vector<OwnedEvent> events = Fill(builder, source, wanted);
    ASSERT_FALSE(events.empty());
    ExpectRoundTrip(builder, events, chunk);
  }
}

TEST(EventChunkTest, KeepsExtremeNumbers) {
  EventChunkBuilder builder;
  DecodedChunk chunk;
  std::vector<OwnedEvent> events;
  const uint64_t numbers[] = {0, 1, 1ull << 53, (1ull << 53) + 1, 1ull << 63, ~0ull, 0, ~0ull};
  for (const uint64_t number : numbers) {
    OwnedEvent event = Plain(number);
    event.present = (1u << kFieldCount) - 1;
    event.quoted = FieldBit(Field::kTrackingId);
    event.fields = {number, ~number, number, number, number, number, static_cast<int64_t>(number)};
    event.keys = {{"u", ValueType::kUint}, {"d", ValueType::kDouble}};
    event.values = {{number, {}}, {std::bit_cast<uint64_t>(-0.0), {}}};
    ASSERT_TRUE(AppendTo(builder, event).ok());
    events.push_back(event);
  }
  ExpectRoundTrip(builder, events, chunk);
}

TEST(EventChunkTest, SortsByTimestampAndKeepsEqualOnesInOrder) {
  for (const int span_bits : {3, 11, 12, 30, 50, 52, 63, 64}) {
    SCOPED_TRACE(span_bits);
    SeededRandom random(static_cast<uint64_t>(span_bits));
    EventChunkBuilder builder;
    DecodedChunk chunk;
    std::vector<OwnedEvent> events;
    for (uint64_t i = 0; i < 3000; ++i) {
      OwnedEvent event = Plain(random.Next64() >> (64 - span_bits));
      event.fields.id = i;
      ASSERT_TRUE(AppendTo(builder, event).ok());
      events.push_back(event);
    }
    ExpectRoundTrip(builder, events, chunk);
  }
}

TEST(EventChunkTest, EmptyChunkHasNoBytes) {
  EventChunkBuilder builder;
  ASSERT_TRUE(builder.InternShape(Plain(1).shape()).ok());
  const EncodedColumns encoded = builder.Finish();
  EXPECT_EQ(encoded.bytes, "");
  EXPECT_EQ(encoded.event_count, 0u);
  DecodedChunk chunk;
  EXPECT_TRUE(chunk.Decode("").ok());
  EXPECT_EQ(chunk.size(), 0u);
  EXPECT_EQ(CompressColumns(""), "");
}

TEST(EventChunkTest, SameShapeHasTheSameNumberAndAnyDifferenceAnother) {
  EventChunkBuilder builder;
  OwnedEvent event = Plain(1);
  event.keys = {{"a", ValueType::kUint}, {"b", ValueType::kUint}};
  const auto first = builder.InternShape(event.shape());
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*builder.InternShape(event.shape()), *first);
  std::vector<OwnedEvent> others(8, event);
  others[0].event_type = "a";
  others[1].phase = Phase::kStop;
  others[2].present |= FieldBit(Field::kNcIdx);
  others[3].quoted = FieldBit(Field::kId);
  others[4].keys.pop_back();
  std::swap(others[5].keys[0], others[5].keys[1]);
  others[6].keys[1].type = ValueType::kInt;
  others[7].keys[1].scope = KeyScope::kTop;
  for (size_t i = 0; i < others.size(); ++i) {
    EXPECT_EQ(*builder.InternShape(others[i].shape()), *first + i + 1);
  }
}

TEST(EventChunkTest, TakesNoMoreEventsThanTheLimit) {
  EventChunkBuilder builder;
  for (uint32_t i = 0; i < limits::kChunkEventsMax; ++i) {
    ASSERT_TRUE(AppendTo(builder, Plain(i)).ok());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(AppendTo(builder, Plain(1))));
  EXPECT_EQ(builder.Finish().event_count, limits::kChunkEventsMax);
  EXPECT_TRUE(AppendTo(builder, Plain(1)).ok());
}

TEST(EventChunkTest, TakesNoMoreShapesThanTheLimit) {
  EventChunkBuilder builder;
  OwnedEvent event = Plain(1);
  for (uint32_t i = 0; i < limits::kChunkShapesMax; ++i) {
    event.event_type = std::to_string(i);
    ASSERT_TRUE(AppendTo(builder, event).ok());
  }
  EXPECT_TRUE(builder.InternShape(event.shape()).ok());  // a known one
  event.event_type = "one more";
  EXPECT_TRUE(absl::IsResourceExhausted(builder.InternShape(event.shape()).status()));
  const EncodedColumns encoded = builder.Finish();
  DecodedChunk chunk;
  ASSERT_TRUE(chunk.Decode(encoded.bytes).ok());
  EXPECT_EQ(chunk.shapes().size(), limits::kChunkShapesMax);
  EXPECT_TRUE(builder.InternShape(event.shape()).ok());
}

TEST(EventChunkTest, TakesNoMoreStringsThanTheLimit) {
  EventChunkBuilder builder;
  OwnedEvent event = Plain(1);
  for (int k = 0; k < 60; ++k) event.keys.push_back({"k", ValueType::kString});
  uint32_t number = 0;
  absl::Status status;
  uint32_t events = 0;
  for (; status.ok(); events += status.ok()) {
    event.values.clear();
    for (int k = 0; k < 60; ++k) event.values.push_back({0, std::to_string(number++)});
    status = AppendTo(builder, event);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(events, (limits::kChunkStringsMax - 2) / 60);
  EXPECT_EQ(builder.event_count(), events);
  DecodedChunk chunk;
  const EncodedColumns encoded = builder.Finish();
  ASSERT_TRUE(chunk.Decode(encoded.bytes).ok());
  EXPECT_EQ(chunk.value(events - 1, 59).text, std::to_string(events * 60 - 1));
  EXPECT_TRUE(AppendTo(builder, event).ok());
}

// Noise of the largest size: the compressed chunk must still fit its limit.
TEST(EventChunkTest, StaysUnderTheByteLimitWhateverItHolds) {
  SeededRandom random(5);
  EventChunkBuilder builder;
  OwnedEvent event = Plain(1);
  event.keys = {{"noise", ValueType::kString}, {"number", ValueType::kUint}};
  std::vector<OwnedEvent> events;
  absl::Status status;
  while (status.ok()) {
    std::string noise(limits::kStringBytesMax, '\0');
    for (char& c : noise) c = static_cast<char>(random.Next64());
    event.values = {{0, noise}, {random.Next64(), {}}};
    status = AppendTo(builder, event);
    if (status.ok()) events.push_back(event);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_GT(events.size(), 60u);
  DecodedChunk chunk;
  ExpectRoundTrip(builder, events, chunk);
  EXPECT_TRUE(AppendTo(builder, event).ok());
}

TEST(EventChunkTest, RejectsEventsBeyondChunkLimits) {
  EventChunkBuilder builder;
  OwnedEvent event = Plain(1);
  event.keys = {{"s", ValueType::kString}};
  event.values = {{0, std::string(limits::kStringBytesMax + 1, 'x')}};
  EXPECT_TRUE(absl::IsInvalidArgument(AppendTo(builder, event)));
  event.values[0].text.pop_back();
  EXPECT_TRUE(AppendTo(builder, event).ok());

  event.keys = {{"d", ValueType::kDouble}};
  event.values = {{std::bit_cast<uint64_t>(std::numeric_limits<double>::infinity()), {}}};
  EXPECT_TRUE(absl::IsInvalidArgument(AppendTo(builder, event)));

  event = Plain(1);
  event.event_type.assign(limits::kStringBytesMax + 1, 'x');
  EXPECT_TRUE(absl::IsInvalidArgument(AppendTo(builder, event)));
  event = Plain(1);
  event.keys.assign(limits::kAttributesPerEventMax + 1, {"k", ValueType::kNull});
  EXPECT_TRUE(absl::IsInvalidArgument(AppendTo(builder, event)));
  event = Plain(1);
  event.quoted = FieldBit(Field::kThreadId);
  EXPECT_TRUE(absl::IsInvalidArgument(AppendTo(builder, event)));
  event = Plain(1);
  event.phase = static_cast<Phase>(kPhaseMax + 1);
  EXPECT_TRUE(absl::IsInvalidArgument(AppendTo(builder, event)));

  // 64 strings of 64 KiB: each may be, all in one event may not.
  event = Plain(1);
  for (char c = 0; c < 64; ++c) {
    event.keys.push_back({"k", ValueType::kString});
    event.values.push_back({0, std::string(limits::kStringBytesMax, c)});
  }
  EXPECT_TRUE(absl::IsInvalidArgument(AppendTo(builder, event)));
  EXPECT_TRUE(absl::IsInvalidArgument(builder.Append(99, {}, {})));
  EXPECT_EQ(builder.event_count(), 1u);
}

// Seven kinds of chunk of one source must give the same bytes each time: nothing depends on what a
// builder held before.
TEST(EventChunkTest, ReuseDoesNotChangeTheBytes) {
  EventChunkBuilder reused;
  for (uint64_t seed = 1; seed < 8; ++seed) {
    EventChunkBuilder fresh;
    ExtremeEvents source(seed, 10);
    for (int i = 0; i < 300; ++i) {
      const OwnedEvent event = source.Next();
      ASSERT_TRUE(AppendTo(reused, event).ok());
      ASSERT_TRUE(AppendTo(fresh, event).ok());
    }
    EXPECT_EQ(reused.Finish().bytes, fresh.Finish().bytes);
  }
}

TEST(ColumnsCompressionTest, RefusesAllButOneWholeFrame) {
  const std::string columns(5000, 'a');
  const std::string frame = CompressColumns(columns);
  std::string out;
  EXPECT_TRUE(UncompressColumns(frame, 5000, out).ok());
  EXPECT_EQ(out, columns);
  EXPECT_TRUE(absl::IsInvalidArgument(UncompressColumns(frame, 4999, out)));
  EXPECT_TRUE(absl::IsInvalidArgument(UncompressColumns(frame, 0, out)));
  EXPECT_TRUE(absl::IsInvalidArgument(UncompressColumns(frame + frame, 5000, out)));
  EXPECT_TRUE(absl::IsInvalidArgument(UncompressColumns(frame + "x", 5000, out)));
  EXPECT_TRUE(absl::IsInvalidArgument(UncompressColumns("", 5000, out)));
  for (size_t size = 0; size < frame.size(); ++size) {
    EXPECT_FALSE(UncompressColumns(frame.substr(0, size), 5000, out).ok());
    EXPECT_EQ(out, "");
  }
  EXPECT_TRUE(
      absl::IsInvalidArgument(UncompressColumns(frame, limits::kChunkColumnsBytesMax + 1, out)));
  EXPECT_TRUE(absl::IsInvalidArgument(
      UncompressColumns(std::string(limits::kChunkBytesMax + 1, 'x'), 5000, out)));
}

}  // namespace
}  // namespace neurontrace
