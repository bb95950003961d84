// SPDX-License-Identifier: Apache-2.0
// Spans and counters from the items of digests, against those that read every event; and the
// digests of a store in the answers of views.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "aggregator/store/store_test_support.h"
#include "aggregator/timeline/timeline_reader.h"
#include "aggregator/view/capture_views.h"
#include "aggregator/view/digest_service.h"
#include "aggregator/view/digest_view_test_support.h"
#include "aggregator/view/span_collector.h"
#include "lib/trace/columns_compression.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What a test compares of a row.
struct RowFacts {
  std::string name;
  uint32_t stream = 0;
  uint32_t order = 0;
  uint32_t depth = 0;
  uint64_t events = 0;
  // Start, duration, name, flags of items that are wider than a pixel.
  std::multiset<std::tuple<uint32_t, uint32_t, std::string, int>> wide;
  friend bool operator==(const RowFacts&, const RowFacts&) = default;
};
void PrintTo(const RowFacts& row, std::ostream* out) {
  *out << row.name << " of " << row.stream << " order " << row.order << " depth " << row.depth
       << " events " << row.events << " wide " << row.wide.size();
}

class DigestViewTest : public DigestFixture {
 protected:
  SpanAnswer Exact(const SpanCollector::Window& window) {
    SpanCollector collector(window);
    ReadFrom(source_, collector, window.from_ns, window.to_ns);
    return collector.Take();
  }

  SpanAnswer Digested(const SpanCollector::Window& window) {
    const std::vector<uint32_t> streams = AllStreams();
    const uint64_t merge_ns =
        std::max<uint64_t>((window.to_ns - window.from_ns) / window.pixels, 1);
    absl::flat_hash_set<uint32_t> excluded;
    while (true) {
      auto feed =
          DigestFeed::Make(store_->digests(), source_, {source_.description(), clocks_, streams},
                           {window.from_ns, window.to_ns, merge_ns}, excluded);
      EXPECT_TRUE(feed.ok()) << feed.status();
      SelectedStreams masked(source_, source_.description(), streams, UINT64_MAX, &*feed);
      SpanCollector collector(window, &*feed);
      ReadFrom(masked, collector, window.from_ns, window.to_ns);
      if (!feed->conflicts().empty()) {
        excluded.insert(feed->conflicts().begin(), feed->conflicts().end());
        continue;
      }
      digested_chunks_ += feed->chunks();
      SpanAnswer answer = collector.Take();
      answer.unreadable_chunks += feed->unreadable_chunks();
      return answer;
    }
  }

  static std::map<uint64_t, RowFacts> FactsOf(const SpanAnswer& answer, uint64_t merge_ns) {
    std::map<uint64_t, RowFacts> rows;
    for (const SpanRow& row : answer.rows) {
      RowFacts& facts = rows[row.id];
      facts = {.name = row.name,
               .stream = row.stream,
               .order = row.order,
               .depth = row.depth,
               .events = row.events};
      uint64_t counted = 0;
      for (size_t i = 0; i < row.spans.size(); ++i) {
        counted += row.spans.count[i];
        if (row.spans.count[i] > 1 || row.spans.duration[i] < merge_ns) continue;
        facts.wide.emplace(row.spans.start[i], row.spans.duration[i],
                           answer.names[row.spans.name[i]], row.spans.flags[i]);
      }
      EXPECT_EQ(row.counters.size() == 0 ? counted : row.events, row.events) << row.name;
      EXPECT_TRUE(std::ranges::is_sorted(row.spans.start)) << row.name;
    }
    return rows;
  }

  // Compares both ways for one window.
  void Compare(const SpanCollector::Window& window) {
    const uint64_t merge_ns =
        std::max<uint64_t>((window.to_ns - window.from_ns) / window.pixels, 1);
    const SpanAnswer exact = Exact(window);
    const SpanAnswer digested = Digested(window);
    std::map<uint64_t, RowFacts> expected = FactsOf(exact, merge_ns);
    std::map<uint64_t, RowFacts> actual = FactsOf(digested, merge_ns);
    // Where chunks overlap, merged items of two digests may need a level more than their events.
    for (auto& [id, row] : actual) {
      if (!chunks_overlap_ || !expected.contains(id)) continue;
      EXPECT_GE(row.depth, expected[id].depth);
      row.depth = expected[id].depth;
    }
    EXPECT_EQ(actual, expected) << window.from_ns - kBase << " to " << window.to_ns - kBase
                                << " at " << window.pixels;
    EXPECT_EQ(digested.unreadable_chunks > 0, exact.unreadable_chunks > 0);
  }

  // Compares the whole and windows at random places and zooms.
  void CompareEverywhere(int windows) {
    Compare({.from_ns = kBase, .to_ns = kBase + 2 * kLengthNs, .pixels = 40});
    for (int i = 0; i < windows; ++i) {
      const uint64_t from_ns = kBase + shift_ns_ + random_() % kLengthNs;
      const uint64_t to_ns = from_ns + 1 + random_() % (kLengthNs / (1 + random_() % 8));
      Compare({.from_ns = i % 3 == 0 ? kBase + shift_ns_ : from_ns,
               .to_ns = to_ns,
               .pixels = static_cast<uint32_t>(1 + random_() % 400)});
      if (HasFailure()) return;
    }
  }

  bool chunks_overlap_ = false;
  uint64_t shift_ns_ = 0;
};

TEST_F(DigestViewTest, RowsAndCountsAreThoseOfTheEvents) {
  for (uint32_t core = 0; core < 3; ++core) AddChunks(AddCore(core, core), MakeEvents(4'000), 0);
  Build(/*has_ended=*/true);
  CompareEverywhere(60);
  EXPECT_GT(digested_chunks_, 0u);
}

TEST_F(DigestViewTest, SpansWithoutStopOrStartAreCountedOnce) {
  open_percent_ = 1;
  lost_percent_ = 1;
  for (uint32_t core = 0; core < 2; ++core) AddChunks(AddCore(core, core), MakeEvents(4'000), 0);
  Build(/*has_ended=*/true);
  CompareEverywhere(60);
  EXPECT_GT(digested_chunks_, 0u);
}

TEST_F(DigestViewTest, ChunksMayComeLate) {
  chunks_overlap_ = true;
  lost_percent_ = 1;
  for (uint32_t core = 0; core < 4; ++core) {
    if (core == 3) lost_percent_ = 0;
    AddChunks(AddCore(core, core), MakeEvents(2'000), core == 0 ? 30 : 8);
  }
  Build(/*has_ended=*/true);
  CompareEverywhere(60);
  EXPECT_GT(digested_chunks_, 0u);
}

// A capture that grows, ends, and grows once more because an agent was away.
TEST_F(DigestViewTest, FollowsAGrowingCapture) {
  open_percent_ = 1;
  const uint32_t core = AddCore(0, 0);
  const std::vector<ScriptEvent> events = MakeEvents(4'000);
  const auto add = [&](size_t from, size_t to) {
    AddChunks(core,
              {events.begin() + static_cast<ptrdiff_t>(events.size() * from / 10),
               events.begin() + static_cast<ptrdiff_t>(events.size() * to / 10)},
              0);
  };
  for (size_t tenth = 0; tenth < 6; ++tenth) {
    add(tenth, tenth + 1);
    CompareEverywhere(4);
    Build(/*has_ended=*/false);
    CompareEverywhere(8);
  }
  Build(/*has_ended=*/true);
  EXPECT_EQ(left_[core], 0u);
  CompareEverywhere(8);
  add(6, 10);
  CompareEverywhere(8);
  Build(/*has_ended=*/true);
  EXPECT_EQ(left_[core], 0u);
  CompareEverywhere(20);
  EXPECT_GT(digested_chunks_, 0u);
}

TEST_F(DigestViewTest, BetterClocksNeedNoOtherDigests) {
  for (uint32_t core = 0; core < 2; ++core) AddChunks(AddCore(core, core), MakeEvents(2'000), 0);
  Build(/*has_ended=*/true);
  shift_ns_ = 777'777'777;
  auto map = ClockMap::FromPieces(
      {{.raw_begin_ns = kBase, .reference_begin_ns = kBase + shift_ns_, .rate = 20'000'000}});
  ASSERT_TRUE(map.ok()) << map.status();
  const StreamDescription& stream = source_.description().streams.front();
  clocks_.maps.Set(stream.identity.worker, stream.clock_domain, *std::move(map));
  CompareEverywhere(20);
  // And a rank that was found out later.
  source_.stream(1).evidence = {{RankSource::kCommunicator, 40, 64, "test"}};
  CompareEverywhere(4);
  EXPECT_GT(digested_chunks_, 0u);
}

TEST_F(DigestViewTest, DamagedChunksAreReported) {
  const uint32_t core = AddCore(0, 0);
  AddChunks(core, MakeEvents(2'000), 0);
  source_.Lose(core, 3);
  Build(/*has_ended=*/true);
  const SpanCollector::Window whole{.from_ns = kBase, .to_ns = kBase + 2 * kLengthNs, .pixels = 40};
  Compare(whole);
  EXPECT_EQ(Digested(whole).unreadable_chunks, 1u);
  EXPECT_GT(digested_chunks_, 0u);
}

TEST_F(DigestViewTest, ExpiredChunksAreNotShown) {
  const uint32_t core = AddCore(0, 0);
  AddChunks(core, MakeEvents(2'000), 0);
  Build(/*has_ended=*/true);
  source_.stream(core).first_sequence = 10;
  Digested({.from_ns = kBase, .to_ns = kBase + 2 * kLengthNs, .pixels = 1});
  // The two lowest groups are read, as are all coarser digests' chunks that have one of them.
  EXPECT_LE(digested_chunks_, source_.stream(core).chunks - 16);
  Build(/*has_ended=*/true);
  EXPECT_EQ((*store_->digests().Next(TestCaptureId(1), core, 0, 0))->first, 8u);
}

TEST_F(DigestViewTest, CountersKeepTheirHighestValue) {
  const uint32_t host = source_.AddStream(
      {.agent_id = "agent", .worker = {"i-a", "boot", 0, 0, ""}, .kind = StreamKind::kHost});
  for (uint64_t i = 0; i < 640; ++i) {
    script_.Add("host_memory", Phase::kCounter, kBase + i * 1'000'000, 0, 0,
                {{"used", (i * 7'919) % 1'000}});
    if (i % 16 == 15) Close(host);
  }
  Build(/*has_ended=*/true);
  const SpanCollector::Window whole{.from_ns = kBase, .to_ns = kBase + 640'000'000, .pixels = 8};
  Compare(whole);
  const SpanAnswer exact = Exact(whole);
  const SpanAnswer digested = Digested(whole);
  ASSERT_EQ(digested.rows.size(), 1u);
  EXPECT_EQ(digested.rows[0].counter_max, exact.rows[0].counter_max);
  EXPECT_EQ(digested.rows[0].events, 640u);
  EXPECT_GT(digested_chunks_, 0u);
}

// From the chunks of a store to the answer.
class DigestServiceTest : public ::testing::Test, private ViewClocks {
 protected:
  static constexpr uint64_t kChunks = 40;

  void SetUp() override {
    record_ = TestCapture(1);
    record_.state = CaptureState::kComplete;
    ASSERT_TRUE(store_->captures().Put(record_, true).ok());
    EventChunkBuilder builder;
    EventScript script(builder);
    for (uint64_t sequence = 0; sequence < kChunks; ++sequence) {
      ReceivedChunk chunk = TestChunk(1, TestStream(0), sequence);
      for (uint64_t i = 0; i < 50; ++i) {
        const uint64_t at_ns = 1'000'000 + sequence * 1'000 + i * 10;
        script.Span("nrt_execute", at_ns, at_ns + 5, sequence * 50 + i + 1, 7);
      }
      const std::string columns = builder.Finish().bytes;
      chunk.header.event_count = 100;
      chunk.header.first_timestamp_ns = 1'000'000 + sequence * 1'000;
      chunk.header.last_timestamp_ns = chunk.header.first_timestamp_ns + 495;
      chunk.header.columns_bytes = static_cast<uint32_t>(columns.size());
      chunk.columns = CompressColumns(columns);
      ASSERT_EQ(PutOne(*store_, chunk).outcome, PutOutcome::kStored);
    }
  }

  std::unique_ptr<CaptureViews> Views(uint64_t chunks_max, uint64_t exact_chunks_max) {
    return std::make_unique<CaptureViews>(
        CaptureViews::Deps{.store = *store_, .clocks = *this, .clock = clock_}, chunks_max,
        exact_chunks_max);
  }
  std::string Spans(uint64_t exact_chunks_max, uint64_t chunks_max = 1'000) {
    ViewRequest request;
    request.pixels = 16;
    const auto answer = Views(chunks_max, exact_chunks_max)->Spans(record_, request, {});
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.value_or("");
  }
  absl::StatusOr<CaptureClocks> ClocksOf(const CaptureRecord&) override { return clocks_; }

  std::unique_ptr<Store> store_ = OpenInMemory();
  CaptureRecord record_;
  CaptureClocks clocks_;
  FakeClock clock_;
  prometheus::Registry registry_;
};

TEST_F(DigestServiceTest, ViewsUseDigestsOfTheStore) {
  EXPECT_THAT(Spans(/*exact_chunks_max=*/0), HasSubstr("\"digested_chunks\":0"));
  DigestService service({.store = *store_, .registry = registry_});
  service.RunPass();
  const std::string digested = Spans(/*exact_chunks_max=*/0);
  EXPECT_THAT(digested, HasSubstr("\"digested_chunks\":40"));
  EXPECT_THAT(digested, HasSubstr("\"events\":\"2000\""));
  EXPECT_THAT(digested, HasSubstr("\"cut\":null"));
  // A window of few chunks is read as ever.
  EXPECT_THAT(Spans(limits::kViewExactChunksMax), HasSubstr("\"digested_chunks\":0"));
}

TEST_F(DigestServiceTest, ALargeCaptureIsNotCut) {
  EXPECT_THAT(Spans(/*exact_chunks_max=*/0, /*chunks_max=*/10), HasSubstr("more than 10 chunks"));
  DigestService service({.store = *store_, .registry = registry_});
  service.RunPass();
  const std::string digested = Spans(/*exact_chunks_max=*/0, /*chunks_max=*/10);
  EXPECT_THAT(digested, HasSubstr("\"events\":\"2000\""));
  EXPECT_THAT(digested, Not(HasSubstr("more than 10 chunks")));
}

TEST_F(DigestServiceTest, EveryCountOfALargeCaptureIsComplete) {
  const auto held = Views(/*chunks_max=*/10, /*exact_chunks_max=*/10);
  CaptureViews& views = *held;
  ViewRequest request;
  request.query = "name:nrt_execute";
  request.limit = 3;
  EXPECT_THAT(*views.Search(record_, request, {}), HasSubstr("\"complete\":false"));
  EXPECT_THAT(*views.Summary(record_, request, {}), HasSubstr("\"complete\":false"));
  EXPECT_THAT(*views.Heat(record_, request, {}), HasSubstr("\"complete\":false"));
  DigestService(DigestService::Deps{*store_, registry_}).RunPass();
  const std::string found = *views.Search(record_, request, {});
  EXPECT_THAT(found, HasSubstr("\"total\":\"2000\",\"ranks\":1,"));
  EXPECT_THAT(found, HasSubstr("\"complete\":true"));
  EXPECT_THAT(found, HasSubstr("\"next\":\"3\""));
  EXPECT_THAT(found, HasSubstr("\"digested_chunks\":40"));
  request.query = "name:absent";
  EXPECT_THAT(*views.Search(record_, request, {}), HasSubstr("{\"hits\":[],\"next\":\"\""));
  request.query.clear();
  const std::string summed = *views.Summary(record_, request, {});
  EXPECT_THAT(summed, HasSubstr("\"events\":\"2000\""));
  EXPECT_THAT(summed, HasSubstr("\"complete\":true"));
  EXPECT_THAT(*views.Heat(record_, request, {}), HasSubstr("\"complete\":true"));
}

// The digests count at the runtime's times, the list is read by the device's, which is earlier.
TEST_F(DigestServiceTest, ACountedSearchListsHitsThatADevicesClockMovesForward) {
  constexpr uint64_t kFirstNs = 1'000'000'000;  // by the runtime
  constexpr uint64_t kEarlierNs = DeviceTimes::kShiftMaxNs - 1'000;
  constexpr uint64_t kDeviceNs = 5'000'000'000;  // what the device's counter shows then
  EventChunkBuilder builder;
  EventScript script(builder);
  for (uint64_t sequence = 0; sequence < kChunks; ++sequence) {
    ReceivedChunk chunk = TestChunk(1, TestStream(1), sequence);
    for (uint64_t i = sequence * 50; i < sequence * 50 + 50; ++i) {
      script.Instant("hw_notify", kFirstNs + i * 1'000, 0, 7,
                     {{"nc_timestamp_ns", kDeviceNs + i * 1'000}});
    }
    const std::string columns = builder.Finish().bytes;
    chunk.header.event_count = 50;
    chunk.header.first_timestamp_ns = kFirstNs + sequence * 50'000;
    chunk.header.last_timestamp_ns = chunk.header.first_timestamp_ns + 49'000;
    chunk.header.columns_bytes = static_cast<uint32_t>(columns.size());
    chunk.columns = CompressColumns(columns);
    ASSERT_EQ(PutOne(*store_, chunk).outcome, PutOutcome::kStored);
  }
  auto map = ClockMap::FromPieces({{kDeviceNs, kFirstNs - kEarlierNs, 0, 0}});
  ASSERT_TRUE(map.ok()) << map.status();
  clocks_.maps.SetDevice(TestStream(1).worker, {.nc_idx = 1}, {{{0, 0, 0, 0, *std::move(map)}}});
  ViewRequest request;
  request.query = "name:hw_notify";
  request.from_ns = kFirstNs - 100'000'000;
  request.to_ns = kFirstNs + 100'000'000;
  request.limit = 1;
  DigestService(DigestService::Deps{*store_, registry_}).RunPass();
  const auto held = Views(/*chunks_max=*/1'000, /*exact_chunks_max=*/0);
  const auto found = held->Search(record_, request, {});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(*found, HasSubstr("\"digested_chunks\":40"));
  EXPECT_THAT(*found, HasSubstr("\"total\":\"2000\""));
  EXPECT_THAT(*found, HasSubstr(fmt::format("\"start_ns\":\"{}\"", kFirstNs - kEarlierNs)));
}

TEST_F(DigestServiceTest, DigestsOfAnotherVersionAreMadeAgain) {
  DigestService(DigestService::Deps{*store_, registry_}).RunPass();
  for (uint64_t first = 0; first < kChunks; first += kDigestBaseChunks) {
    const StoredDigest other{0, first, "\x7f of another version"};
    ASSERT_TRUE(store_->digests().Put(record_.id, 0, {&other, 1}).ok());
  }
  DigestService(DigestService::Deps{*store_, registry_}).RunPass();
  const auto stored = store_->digests().Last(record_.id, 0, 0);
  ASSERT_TRUE(stored.ok() && stored->has_value());
  EXPECT_TRUE(DecodeDigestHead((*stored)->value).ok());
  EXPECT_THAT(Spans(/*exact_chunks_max=*/0), HasSubstr("\"digested_chunks\":40"));
}

TEST_F(DigestServiceTest, ARunningCaptureGetsItsCompleteGroups) {
  record_.state = CaptureState::kRecording;
  ASSERT_TRUE(store_->captures().Put(record_, true).ok());
  DigestService service({.store = *store_, .registry = registry_});
  service.RunPass();
  // The last group waits for a chunk behind it.
  EXPECT_EQ((*store_->digests().Last(record_.id, 0, 0))->first, kChunks - 2 * kDigestBaseChunks);
  record_.state = CaptureState::kComplete;
  ASSERT_TRUE(store_->captures().Put(record_, true).ok());
  service.RunPass();
  EXPECT_EQ((*store_->digests().Last(record_.id, 0, 0))->first, kChunks - kDigestBaseChunks);
}

TEST_F(DigestServiceTest, TheThreadMakesThemAndEnds) {
  DigestService service({.store = *store_, .registry = registry_});
  service.Begin();
  service.End();
  // It may have ended before its first digest: what it made is valid, and the rest is read.
  EXPECT_THAT(Spans(/*exact_chunks_max=*/0), HasSubstr("\"events\":\"2000\""));
}

}  // namespace
}  // namespace neurontrace
