// SPDX-License-Identifier: Apache-2.0
// Goal: what a filter or a window leaves out is neither decoded nor read, and what reaches into a
// window is there. Method: captures in memory that count what is read of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "aggregator/timeline/event_script.h"
#include "aggregator/timeline/fake_chunk_source.h"
#include "aggregator/timeline/timeline_reader.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

using ::testing::IsEmpty;

constexpr uint64_t kStart = 1'750'000'000'000'000'000u;

struct Shown {
  std::string type;
  uint64_t start_ns;  // after kStart
  uint64_t end_ns;
  int flags;
  friend bool operator==(const Shown&, const Shown&) = default;
};
void PrintTo(const Shown& shown, std::ostream* out) {
  *out << shown.type << " [" << shown.start_ns << ", " << shown.end_ns << "] flags " << shown.flags;
}

class TimeWindowTest : public ::testing::Test {
 protected:
  uint32_t AddCore(uint32_t rank) {
    return source_.AddStream({.agent_id = "agent",
                              .worker = {"i-" + std::to_string(rank), "boot", 1, 1, ""},
                              .kind = StreamKind::kNeuronCore,
                              .nc_idx = 0},
                             {{RankSource::kCommunicator, rank, 1000, "test"}});
  }
  // Chunks of one second with ten short spans each.
  void Fill(uint32_t stream, uint64_t first_second, uint64_t last_second) {
    for (uint64_t second = first_second; second <= last_second; ++second) {
      for (uint64_t i = 0; i < 10; ++i) {
        const uint64_t at = kStart + second * kNsPerSecond + i * 1'000'000;
        script_.Span("span", at, at + 1'000, second * 10 + i + 1);
      }
      source_.AddChunk(stream, builder_);
    }
  }
  // Chunks of random types, with spans inside of them and from one to another.
  void FillAtRandom(uint32_t stream, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::pair<std::string, uint64_t>> open;
    uint64_t tracking_id = 0;
    for (uint64_t second = 0; second < 30; ++second) {
      uint64_t at = kStart + second * kNsPerSecond;
      for (uint64_t event = random() % 4; event < 5; ++event) {
        const std::string& type = kTypes[random() % kTypes.size()];
        at += 1 + random() % 1'000'000;
        if (!open.empty() && random() % 3 == 0) {
          script_.Stop(open.back().first, at, open.back().second, 7);
          open.pop_back();
        } else if (random() % 2 == 0) {
          script_.Start(type, at, ++tracking_id, 7);
          open.emplace_back(type, tracking_id);
        } else {
          script_.Instant(type, at, ++tracking_id, 7);
        }
      }
      source_.AddChunk(stream, builder_);
    }
  }
  std::vector<Shown> Read(uint64_t from_second, uint64_t to_second, TimelineFilter filter = {}) {
    filter.window_start_ns = kStart + from_second * kNsPerSecond;
    filter.window_end_ns = kStart + to_second * kNsPerSecond;
    auto reader = TimelineReader::Open(source_, {.filter = filter});
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::vector<Shown> shown;
    TimelineBatch batch;
    while (*(*reader)->Next(batch)) {
      for (const TimelineRecord* record : batch.records) {
        shown.push_back({std::string(record->start().event_type), record->start_ns - kStart,
                         record->end_ns - kStart, record->flags});
      }
    }
    counts_ = (*reader)->counts();
    streams_ = (*reader)->streams().size();
    return shown;
  }

  const std::vector<std::string> kTypes = {"nc_exec_running", "cc_running", "nrt_execute",
                                           "nrt_load"};
  FakeChunkSource source_;
  EventChunkBuilder builder_;
  EventScript script_{builder_};
  TimelineCounts counts_;
  size_t streams_ = 0;
};

TEST_F(TimeWindowTest, OneSecondCostsTheSameOutOfAnyLength) {
  for (uint32_t rank = 0; rank < 20; ++rank) Fill(AddCore(rank), 0, 600);
  EXPECT_EQ(Read(300, 301).size(), 200u);
  // The second, two before it in which a span can begin, and the chunks at both ends.
  EXPECT_LE(source_.chunks_read(), 20u * 4);
  EXPECT_EQ(source_.chunks_read(), counts_.chunks_read);
  EXPECT_LE(source_.entries_read(), 20u * 32) << "one read of each index";
}

TEST_F(TimeWindowTest, ReadsNothingOfStreamsOutsideWindow) {
  Fill(AddCore(0), 0, 20);
  Fill(AddCore(1), 100, 120);
  Fill(AddCore(2), 200, 220);
  EXPECT_EQ(Read(100, 300).size(), 420u);
  const uint64_t reads = source_.index_reads();
  const uint64_t chunks = source_.chunks_read();
  EXPECT_THAT(Read(150, 151), IsEmpty());
  EXPECT_EQ(source_.index_reads(), reads);
  EXPECT_EQ(source_.chunks_read(), chunks);
  EXPECT_EQ(Read(200, 201).size(), 10u);
  EXPECT_EQ(source_.index_reads(), reads + 1) << "of one stream of three";
}

TEST_F(TimeWindowTest, RanksAreSelectedByRangesOfWorkerGid) {
  for (uint32_t rank = 0; rank < 10; ++rank) Fill(AddCore(rank), 0, 9);
  Fill(source_.AddStream({.agent_id = "agent",
                          .worker = {"i-unknown", "boot", 1, 1, ""},
                          .kind = StreamKind::kNeuronCore,
                          .nc_idx = 0}),
       0, 9);
  EXPECT_EQ(Read(0, 10).size(), 1100u);
  const uint64_t chunks = source_.chunks_read();
  TimelineFilter filter;
  filter.worker_gids = {{2, 3}, {9, 100}};
  EXPECT_EQ(Read(0, 10, filter).size(), 300u);
  EXPECT_EQ(streams_, 3u);
  EXPECT_EQ(source_.chunks_read(), chunks + 30);
}

TEST_F(TimeWindowTest, SkipsChunksWithoutSelectedType) {
  const uint32_t stream = AddCore(0);
  Fill(stream, 0, 9);
  const auto at = [](uint64_t second) { return kStart + second * kNsPerSecond; };
  script_.Start("rare", at(10), 1, 7);
  script_.Span("span", at(10) + 1, at(10) + 2, 1'001);
  source_.AddChunk(stream, builder_);
  Fill(stream, 11, 19);
  script_.Stop("rare", at(20), 1, 7);
  source_.AddChunk(stream, builder_);
  Fill(stream, 21, 29);
  source_.Lose(stream, 5);
  source_.Lose(stream, 15);
  TimelineFilter filter;
  filter.event_types = *EventFilter::Parse({"rare"});
  const Shown rare{"rare", 10 * kNsPerSecond, 20 * kNsPerSecond, kStopFollows};
  const Shown stop{"rare", 20 * kNsPerSecond, 20 * kNsPerSecond, 0};
  EXPECT_THAT(Read(0, 100, filter), ::testing::ElementsAre(rare, stop));
  EXPECT_EQ(source_.chunks_read(), 2u);
  EXPECT_EQ(counts_.unreadable_chunks, 0u) << "no chunk is missing";
  filter.event_types = *EventFilter::Parse({"^span"});
  EXPECT_THAT(Read(0, 100, filter), ::testing::ElementsAre(rare, stop));
  EXPECT_EQ(source_.chunks_read(), 4u);
  filter.event_types = *EventFilter::Parse({"none"});
  EXPECT_THAT(Read(0, 100, filter), IsEmpty());
  EXPECT_EQ(source_.chunks_read(), 4u);
  Read(0, 100);
  EXPECT_EQ(counts_.unreadable_chunks, 2u);
}

TEST_F(TimeWindowTest, TypeIndexDoesNotChangeOutput) {
  for (uint32_t rank = 0; rank < 4; ++rank) FillAtRandom(AddCore(rank), rank);
  const FakeChunkSource with_types = source_;
  uint64_t shown = 0;
  uint64_t chunks_spared = 0;
  for (const std::vector<std::string>& items :
       std::vector<std::vector<std::string>>{{},
                                             {"nrt_load"},
                                             {"device_exec", "nrt_load"},
                                             {"hardware"},
                                             {"software", "^nrt_load"},
                                             {"^nrt_*"},
                                             {"nrt_*"},
                                             {"nothing"}}) {
    for (const auto& [from, to] : {std::pair(0, 100), std::pair(7, 12), std::pair(25, 100)}) {
      TimelineFilter filter;
      filter.event_types = *EventFilter::Parse(items);
      source_ = with_types;
      const std::vector<Shown> seen = Read(from, to, filter);
      const uint64_t chunks_read = counts_.chunks_read;
      const TimelineCounts counts = counts_;
      source_.ForgetEventTypes();
      EXPECT_EQ(seen, Read(from, to, filter));
      EXPECT_EQ(counts.open_spans, counts_.open_spans);
      EXPECT_EQ(counts.start_lost_spans, counts_.start_lost_spans);
      EXPECT_LE(chunks_read, counts_.chunks_read);
      chunks_spared += counts_.chunks_read - chunks_read;
      shown += seen.size();
    }
  }
  EXPECT_GT(shown, 1'000u);
  EXPECT_GT(chunks_spared, 300u);
}

TEST_F(TimeWindowTest, ShowsSpansReachingIntoWindow) {
  const uint32_t stream = AddCore(0);
  const auto at = [](uint64_t ms) { return kStart + ms * 1'000'000; };
  script_.Start("far", at(1'000), 2, 7);
  source_.AddChunk(stream, builder_);
  script_.Span("before", at(8'100), at(8'200), 1);
  script_.Start("near", at(8'500), 3, 7);
  script_.Start("through", at(8'600), 4, 7);
  source_.AddChunk(stream, builder_);
  script_.Span("inside", at(10'200), at(10'300), 5);
  script_.Start("leaves", at(10'900), 6, 7);
  source_.AddChunk(stream, builder_);
  script_.Stop("near", at(10'400), 3, 7);
  script_.Stop("far", at(10'500), 2, 7);
  source_.AddChunk(stream, builder_);
  script_.Stop("leaves", at(11'500), 6, 7);
  script_.Stop("through", at(12'000), 4, 7);
  script_.Span("after", at(12'100), at(12'200), 7);
  source_.AddChunk(stream, builder_);
  const auto ns = [](uint64_t ms) { return ms * 1'000'000; };
  // What began more than the lookback of two seconds before it has its stop alone.
  EXPECT_THAT(Read(10, 11), ::testing::UnorderedElementsAre(
                                Shown{"near", ns(8'500), ns(10'400), kStopFollows},
                                Shown{"near", ns(10'400), ns(10'400), 0},
                                Shown{"through", ns(8'600), ns(12'000), kStopFollows},
                                Shown{"inside", ns(10'200), ns(10'300), 0},
                                Shown{"far", ns(10'500), ns(10'500), kStartLost},
                                Shown{"leaves", ns(10'900), ns(11'500), kStopFollows}));
}

}  // namespace
}  // namespace neurontrace
