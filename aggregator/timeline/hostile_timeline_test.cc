// SPDX-License-Identifier: Apache-2.0
// Goal: memory and work of a reading are bounded by its options, not by what an agent sends; what
// a builder cannot make is read all the same. Method: columns by hand, small on the wire.
#include <gtest/gtest.h>

#include "aggregator/timeline/event_script.h"
#include "aggregator/timeline/fake_chunk_source.h"
#include "aggregator/timeline/framework_names.h"
#include "aggregator/timeline/shape_table.h"
#include "aggregator/timeline/timeline_reader.h"
#include "lib/trace/limits.h"
#include "lib/trace/raw_columns_test_support.h"

namespace neurontrace {
namespace {

constexpr size_t kLong = limits::kStringBytesMax;

StreamIdentity Core(uint32_t nc_idx) {
  return {.agent_id = "a", .worker = {"i", "boot", 1, 1, ""}, .nc_idx = nc_idx};
}

// Two events far apart, and 3 MiB of texts that neither refers to.
RawColumns FarApart(uint64_t first_ns) {
  RawColumns columns;
  columns.strings.assign(48, std::string(kLong, 'x'));
  columns.strings.front() = "tick";
  columns.shapes = {{}};
  columns.events = {{first_ns}, {first_ns + 1'000'000'000'000'000}};
  return columns;
}

TEST(HostileTimelineTest, NamesHeldAreBoundedWhateverIsFarApart) {
  constexpr size_t kChunks = 64;
  FakeChunkSource source;
  for (uint32_t i = 0; i < kChunks; ++i) {
    source.AddColumns(source.AddStream(Core(i)), FarApart(1'000 + i).Bytes());
  }
  TimelineOptions options;
  options.name_bytes_max = size_t{16} << 20;
  auto reader = TimelineReader::Open(source, options);
  ASSERT_TRUE(reader.ok()) << reader.status();
  TimelineBatch batch;
  size_t most = 0, records = 0;
  while (true) {
    const auto more = (*reader)->Next(batch);
    ASSERT_TRUE(more.ok()) << more.status();
    if (!*more) break;
    most = std::max(most, (*reader)->name_bytes());
    for (const TimelineRecord* record : batch.records) {
      records += record->start().event_type == "tick";
    }
  }
  EXPECT_EQ(records, 2 * kChunks);
  EXPECT_LT(most, 2 * options.name_bytes_max);
  EXPECT_EQ((*reader)->name_bytes(), 0u);
  EXPECT_EQ((*reader)->counts().moved, 0u);
  EXPECT_LE(source.chunks_read(), 2 * kChunks);
}

// Each slice needs all of them, if it is long: it has to become as short as it takes.
TEST(HostileTimelineTest, NamesHeldAreBoundedWhateverIsNear) {
  constexpr uint64_t kChunks = 32;
  constexpr uint64_t kEvents = 20;
  FakeChunkSource source;
  for (uint32_t i = 0; i < kChunks; ++i) {
    RawColumns columns = FarApart(0);
    columns.events.clear();
    for (uint64_t k = 0; k < kEvents; ++k) columns.events.push_back({1'000 + k * 1'000 + i * 7});
    source.AddColumns(source.AddStream(Core(i)), columns.Bytes());
  }
  TimelineOptions options;
  options.name_bytes_max = size_t{16} << 20;
  auto reader = TimelineReader::Open(source, options);
  ASSERT_TRUE(reader.ok()) << reader.status();
  TimelineBatch batch;
  size_t most = 0, records = 0;
  for (auto more = (*reader)->Next(batch); more.ok() && *more; more = (*reader)->Next(batch)) {
    most = std::max(most, (*reader)->name_bytes());
    records += batch.records.size();
  }
  EXPECT_EQ(records, kChunks * kEvents);
  EXPECT_LT(most, 2 * options.name_bytes_max);
  EXPECT_EQ((*reader)->counts().moved, 0u);
}

TEST(HostileTimelineTest, ChunksOfOneInstantWaitForOneAnother) {
  constexpr size_t kChunks = 32;
  FakeChunkSource source;
  for (uint32_t i = 0; i < kChunks; ++i) {
    source.AddColumns(source.AddStream(Core(i)), FarApart(1'000).Bytes());
  }
  TimelineOptions options;
  options.name_bytes_max = size_t{8} << 20;
  auto reader = TimelineReader::Open(source, options);
  ASSERT_TRUE(reader.ok()) << reader.status();
  TimelineBatch batch;
  size_t most = 0, records = 0;
  for (auto more = (*reader)->Next(batch); more.ok() && *more; more = (*reader)->Next(batch)) {
    most = std::max(most, (*reader)->name_bytes());
    records += batch.records.size();
  }
  EXPECT_EQ(records, 2 * kChunks);
  EXPECT_LT(most, 2 * options.name_bytes_max);
  EXPECT_GT((*reader)->counts().moved, 0u);
}

TEST(HostileTimelineTest, ShapesBeyondTheBytesKeptBelongToTheirChunk) {
  ShapeTable table;
  ChunkNames names;
  const std::string name(kLong, 'k');
  size_t kept = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    const std::string type = std::to_string(i);
    const Shape shape{.event_type = type, .keys = std::vector<ShapeKey>(16, {.name = name})};
    const SharedShape* const shared = table.Share(shape, names);
    EXPECT_EQ(shared->shape, shape);
    kept += shared->number < ShapeTable::kShapesMax;
  }
  EXPECT_EQ(kept + names.own_shapes.size(), 100u);
  EXPECT_GT(kept, 0u);
  EXPECT_LE(kept * 2 * 16 * kLong, ShapeTable::kBytesMax);
  EXPECT_GE(names.bytes, names.own_shapes.size() * 16 * kLong);
  // A small one still finds no room, or one: but the same each time.
  const Shape small{.event_type = "small"};
  EXPECT_EQ(table.Share(small, names), table.Share(small, names));
}

TEST(HostileTimelineTest, AnEmptyStretchIsPassedInOneStep) {
  FakeChunkSource source;
  RawColumns columns = FarApart(1'000);
  columns.events = {{0}, {uint64_t{1} << 62}};
  source.AddColumns(source.AddStream(Core(0)), columns.Bytes());
  auto reader = TimelineReader::Open(source, {});
  ASSERT_TRUE(reader.ok()) << reader.status();
  TimelineBatch batch;
  size_t batches = 0, records = 0;
  for (auto more = (*reader)->Next(batch); more.ok() && *more; more = (*reader)->Next(batch)) {
    ++batches;
    records += batch.records.size();
    if (batches > 1'000) break;
  }
  EXPECT_EQ(records, 2u);
  EXPECT_LE(batches, 2u);
}

// With a look through all of those carried for each it takes a minute.
TEST(HostileTimelineTest, SpansThatCannotBeCarriedCostNothing) {
  FakeChunkSource source;
  const uint32_t stream = source.AddStream(Core(0));
  const TimelineFilter filter;
  StreamIndex index(source, source.stream(stream), filter, {});
  const uint64_t spans = StreamIndex::kCarriedSpansMax + 1'000'000;
  for (uint64_t i = 0; i < spans; ++i) index.Carry({1, i}, i, {.given_up = true}, {});
  EXPECT_EQ(index.TakeCarried({1, 0}), 0u);
  EXPECT_EQ(index.TakeCarried({1, spans - 1}), std::nullopt);
}

class HostileNamesTest : public ::testing::Test {
 protected:
  void Name(const std::string& what, const std::string& pid, const std::string& name) {
    script_.Add({.type = "__metadata",
                 .phase = Phase::kMetadata,
                 .timestamp_ns = 1'000,
                 .attributes = {{"name", what, KeyScope::kTop},
                                {"pid", pid, KeyScope::kTop},
                                {what == "process_labels" ? "labels" : "name", name}}});
  }
  FrameworkNames Read(FrameworkRoom& room) {
    StreamIdentity identity = Core(limits::kNoNcIdx);
    identity.kind = StreamKind::kFramework;
    identity.name = "f.json";
    const uint32_t stream = source_.AddStream(identity);
    source_.AddChunk(stream, builder_);
    auto names = ReadFrameworkNames(source_, source_.stream(stream), room);
    EXPECT_TRUE(names.ok()) << names.status();
    return *std::move(names);
  }

  FakeChunkSource source_;
  EventChunkBuilder builder_;
  EventScript script_{builder_};
};

TEST_F(HostileNamesTest, NamesOfAllFilesAreBoundedByBytes) {
  FrameworkRoom room{.name_bytes = 100'000};
  for (int i = 0; i < 3; ++i) Name("process_name", std::to_string(i), std::string(40'000, 'p'));
  EXPECT_EQ(Read(room).processes.size(), 2u);
  EXPECT_LT(room.name_bytes, 20'000u);
  Name("process_name", "7", std::string(40'000, 'p'));
  Name("process_name", "8", "short");
  const FrameworkNames second = Read(room);
  EXPECT_EQ(second.processes.size(), 1u);
  EXPECT_EQ(second.processes.at("8").name, "short");
}

TEST_F(HostileNamesTest, ANameThatReplacesOneTakesOnlyTheDifference) {
  FrameworkRoom room{.name_bytes = 100'000};
  for (int i = 0; i < 50; ++i) Name("process_name", "1", std::string(40'000 + i, 'p'));
  Name("process_labels", "1", std::string(40'000, 'l'));
  Name("thread_name", "1", "main");
  const FrameworkNames names = Read(room);
  EXPECT_EQ(names.processes.at("1").name.size(), 40'049u);
  EXPECT_EQ(names.processes.at("1").labels.size(), 40'000u);
  EXPECT_EQ(names.threads.size(), 1u);
  EXPECT_LT(room.name_bytes, 20'000u);
}

}  // namespace
}  // namespace neurontrace
