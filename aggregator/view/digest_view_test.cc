// SPDX-License-Identifier: Apache-2.0
// Spans and counters from the items of digests, against those that read every event.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "aggregator/view/digest_view_test_support.h"
#include "aggregator/view/span_collector.h"

namespace neurontrace {
namespace {

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
    for (int i = 0; i < Drawn(windows); ++i) {
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

}  // namespace
}  // namespace neurontrace
