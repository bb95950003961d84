// SPDX-License-Identifier: Apache-2.0
// Which stops of a chunk belong to starts of earlier chunks.
#include "aggregator/store/foreign_stops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Entry = ForeignStops::Entry;

struct TestEvent {
  std::string type;
  Phase phase;
  uint64_t tracking_id;
};

// Encodes the events, one a nanosecond from 100 on, and decodes them into `chunk`.
void MakeChunk(const std::vector<TestEvent>& events, std::string& bytes, DecodedChunk& chunk) {
  EventChunkBuilder builder;
  uint64_t time_ns = 100;
  for (const TestEvent& event : events) {
    const auto shape = builder.InternShape(
        {.event_type = event.type,
         .phase = event.phase,
         .present = FieldBit(Field::kTimestamp) | FieldBit(Field::kTrackingId)});
    ASSERT_TRUE(shape.ok()) << shape.status();
    ASSERT_TRUE(
        builder.Append(*shape, {.timestamp_ns = time_ns++, .tracking_id = event.tracking_id}, {})
            .ok());
  }
  bytes = builder.Finish().bytes;
  ASSERT_TRUE(chunk.Decode(bytes).ok());
}

ForeignStops Find(const std::vector<TestEvent>& events) {
  std::string bytes;
  DecodedChunk chunk;
  MakeChunk(events, bytes, chunk);
  return ForeignStopFinder().Find(chunk);
}

TEST(ForeignStops, AreTheStopsWithoutAStartBeforeThem) {
  const ForeignStops stops = Find({{"a", Phase::kStop, 1},
                                   {"a", Phase::kStart, 2},
                                   {"a", Phase::kStop, 2},
                                   {"b", Phase::kStop, 2},
                                   {"a", Phase::kStop, 2},
                                   {"c", Phase::kStart, 9}});
  EXPECT_TRUE(stops.has_all_types);
  EXPECT_THAT(stops.event_types, ElementsAre("a", "b", "c"));
  EXPECT_THAT(stops.entries, ElementsAre(Entry{0, 1, 100}, Entry{1, 2, 103}, Entry{0, 2, 104}));
}

TEST(ForeignStops, AStopBeforeItsOwnStartIsForeign) {
  EXPECT_THAT(Find({{"a", Phase::kStop, 1}, {"a", Phase::kStart, 1}}).entries,
              ElementsAre(Entry{0, 1, 100}));
}

TEST(ForeignStops, StartsOfOneIdAreCounted) {
  EXPECT_THAT(Find({{"a", Phase::kStart, 1},
                    {"a", Phase::kStart, 1},
                    {"a", Phase::kStop, 1},
                    {"a", Phase::kStop, 1},
                    {"a", Phase::kStop, 1}})
                  .entries,
              ElementsAre(Entry{0, 1, 104}));
}

TEST(ForeignStops, OtherPhasesAreNone) {
  const ForeignStops stops = Find({{"a", Phase::kInstant, 1}, {"a", Phase::kComplete, 1}});
  EXPECT_THAT(stops.event_types, ElementsAre("a")) << "listed once for two shapes";
  EXPECT_THAT(stops.entries, IsEmpty());
}

TEST(ForeignStops, TypesThatAreTooManyAreThoseOfTheStops) {
  const std::string longest(ForeignStops::kListedTypesBytesMax - 1, 'x');
  const std::vector<TestEvent> events = {
      {longest, Phase::kInstant, 1}, {"b", Phase::kStop, 1}, {"b", Phase::kStop, 2}};
  const ForeignStops just = Find(events);
  EXPECT_TRUE(just.has_all_types);
  EXPECT_THAT(just.event_types, ElementsAre(longest, "b"));
  EXPECT_THAT(just.entries, ElementsAre(Entry{1, 1, 101}, Entry{1, 2, 102}));
  std::vector<TestEvent> more = events;
  more.push_back({"c", Phase::kInstant, 1});
  const ForeignStops beyond = Find(more);
  EXPECT_FALSE(beyond.has_all_types);
  EXPECT_THAT(beyond.event_types, ElementsAre("b"));
  EXPECT_THAT(beyond.entries, ElementsAre(Entry{0, 1, 101}, Entry{0, 2, 102}));
}

TEST(ForeignStops, AFinderRemembersNothingOfTheChunkBefore) {
  ForeignStopFinder finder;
  std::string bytes;
  DecodedChunk chunk;
  MakeChunk({{"a", Phase::kStart, 1}}, bytes, chunk);
  EXPECT_THAT(finder.Find(chunk).entries, IsEmpty());
  MakeChunk({{"a", Phase::kStop, 1}}, bytes, chunk);
  EXPECT_THAT(finder.Find(chunk).entries, ElementsAre(Entry{0, 1, 100}));
}

TEST(ForeignStops, HoldsAsManyAsAChunkHasEvents) {
  std::vector<TestEvent> events;
  for (uint64_t id = 0; id < limits::kChunkEventsMax; ++id) {
    events.push_back({"a", Phase::kStop, id << 20});
  }
  EXPECT_EQ(Find(events).entries.size(), limits::kChunkEventsMax);
}

// Ids that whoever made them up had meet in a table without a seed: their bits, folded to 14, are
// all the same. A table that walks past each of them takes minutes for as many chunks.
TEST(ForeignStops, IdsThatAreMadeToMeetCostNoMore) {
  std::vector<TestEvent> events;
  for (uint64_t i = 0; i < limits::kChunkEventsMax; ++i) {
    const uint64_t high = (i + 1) << 14;
    const uint64_t folded = ((high >> 13) ^ (high >> 29) ^ (high >> 47)) & 0x3fff;
    events.push_back({"a", Phase::kStart, high | (folded ^ (folded >> 13))});
  }
  std::string bytes;
  DecodedChunk chunk;
  MakeChunk(events, bytes, chunk);
  ForeignStopFinder finder;
  for (int i = 0; i < 4'000; ++i) ASSERT_THAT(finder.Find(chunk).entries, IsEmpty());
}

}  // namespace
}  // namespace neurontrace
