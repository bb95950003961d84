// SPDX-License-Identifier: Apache-2.0
// Views with digests against views that read every event.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <tuple>

#include "aggregator/store/store_test_support.h"
#include "aggregator/view/busy_map.h"
#include "aggregator/view/capture_views.h"
#include "aggregator/view/digest_builder.h"
#include "aggregator/view/digest_feed.h"
#include "aggregator/view/digest_service.h"
#include "aggregator/view/event_collector.h"
#include "aggregator/view/name_summary.h"
#include "aggregator/view/selected_streams.h"
#include "aggregator/view/span_collector.h"
#include "aggregator/view/view_test_support.h"
#include "lib/trace/columns_compression.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class NeverPauses final : public DigestBuilder::Pacer {
 public:
  bool Continue() override { return true; }
};

// One event of a chunk to come.
struct ScriptEvent {
  uint64_t at_ns = 0;
  Phase phase = Phase::kInstant;
  std::string type;
  uint64_t tracking_id = 0;
  uint64_t thread_id = 0;
};

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

class DigestViewTest : public ViewFixture {
 protected:
  static constexpr uint64_t kLengthNs = 1'500'000'000;  // within the lookback of a reader

  void SetUp() override {
    source_.description().id = TestCaptureId(1);
    ASSERT_TRUE(store_->captures().Put(TestCapture(1), true).ok());
  }

  // Makes events of a stream in the order of time: spans that nest, overlap, have no stop or no
  // start, and instants, on three threads of the runtime and the hardware.
  std::vector<ScriptEvent> MakeEvents(size_t spans) {
    static const char* const kTypes[] = {"nrt_execute", "nc_exec_running", "cc_running"};
    std::vector<ScriptEvent> events;
    for (uint64_t id = 1; id <= spans; ++id) {
      const std::string type = kTypes[random_() % 3];
      const uint64_t thread_id = 7 + random_() % 2;
      const uint64_t at_ns = kBase + random_() % kLengthNs;
      const uint64_t kind = random_() % 100;
      const uint64_t length_ns = random_() % (kind < 60   ? 100'000
                                              : kind < 95 ? 5'000'000
                                                          : 300'000'000);
      if (random_() % 8 == 0) {
        events.push_back({at_ns, Phase::kInstant, type, 0, thread_id});
        continue;
      }
      const uint64_t fate = random_() % 100;
      if (fate >= lost_percent_) events.push_back({at_ns, Phase::kStart, type, id, thread_id});
      if (fate < 100 - open_percent_) {
        events.push_back({at_ns + length_ns, Phase::kStop, type, id, thread_id});
      }
    }
    std::ranges::stable_sort(events, {}, &ScriptEvent::at_ns);
    return events;
  }

  // Adds events as chunks of 48. Some chunks change places with the next one: they come late.
  void AddChunks(uint32_t stream, const std::vector<ScriptEvent>& events, uint64_t swap_percent) {
    std::vector<std::span<const ScriptEvent>> chunks;
    for (size_t at = 0; at < events.size(); at += 48) {
      chunks.push_back(std::span(events).subspan(at, std::min<size_t>(48, events.size() - at)));
    }
    for (size_t i = 0; i + 1 < chunks.size(); ++i) {
      if (random_() % 100 < swap_percent) std::swap(chunks[i], chunks[i + 1]);
    }
    for (const auto& chunk : chunks) {
      for (const ScriptEvent& event : chunk) {
        script_.Add(event.type, event.phase, event.at_ns, event.tracking_id, event.thread_id);
      }
      Close(stream);
    }
  }

  void Build(bool has_ended) {
    DigestBuilder builder(store_->digests());
    NeverPauses pacer;
    for (const StreamDescription& stream : source_.description().streams) {
      const auto built = builder.BuildStream(source_, TestCaptureId(1), stream, has_ended,
                                             retry_at_[stream.number], pacer);
      ASSERT_TRUE(built.ok()) << built.status();
      left_[stream.number] = built->chunks_left;
    }
  }

  std::vector<uint32_t> AllStreams() {
    std::vector<uint32_t> numbers(source_.description().streams.size());
    std::iota(numbers.begin(), numbers.end(), 0u);
    return numbers;
  }

  SpanAnswer Exact(const SpanCollector::Window& window) {
    SpanCollector collector(window);
    ReadFrom(source_, collector, window);
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
      ReadFrom(masked, collector, window);
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

  void ReadFrom(ChunkSource& source, Exporter& exporter, const SpanCollector::Window& window) {
    ExportRequest request;
    request.clocks = &clocks_;
    request.no_flows = true;
    request.filter.window_start_ns = window.from_ns;
    request.filter.window_end_ns = window.to_ns;
    const auto summary = RunExporter(source, exporter, request, true, nullptr);
    ASSERT_TRUE(summary.ok()) << summary.status();
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

  // Reads the window into collectors that make(feed) returns, as CaptureViews does.
  template <typename Make>
  std::unique_ptr<DigestFeed> ReadDigested(const DigestFeed::Window& window, const Make& make) {
    const std::vector<uint32_t> streams = AllStreams();
    absl::flat_hash_set<uint32_t> excluded;
    while (true) {
      auto feed = DigestFeed::Make(store_->digests(), source_,
                                   {source_.description(), clocks_, streams}, window, excluded);
      EXPECT_TRUE(feed.ok()) << feed.status();
      auto digests = std::make_unique<DigestFeed>(*std::move(feed));
      SelectedStreams masked(source_, source_.description(), streams, UINT64_MAX, digests.get());
      ReadFrom(masked, make(digests.get()), {window.from_ns, window.to_ns});
      if (digests->conflicts().empty()) {
        digested_chunks_ += digests->chunks();
        return digests;
      }
      excluded.insert(digests->conflicts().begin(), digests->conflicts().end());
    }
  }

  // Removes the values of a member: what is between its name and the next comma or brace.
  static void RemoveMember(const std::string& name, std::string& json) {
    for (size_t at = json.find(name); at != std::string::npos; at = json.find(name, at)) {
      json.erase(at, json.find_first_of(",}", at) - at);
    }
  }
  // Returns the table without what depends on the way of reading. Own times are compared only where
  // spans enclose each other, see docs/formats/view_api.md.
  static std::string WithoutReading(std::string json, bool has_self) {
    RemoveMember("\"digested_chunks\":", json);
    if (!has_self) RemoveMember("\"self_ns\":", json);
    return json;
  }

  void CompareSummaries(uint64_t from_ns, uint64_t to_ns, bool has_self) {
    for (const auto by : {NameSummary::By::kName, NameSummary::By::kRank}) {
      NameSummary exact(by, {from_ns, to_ns});
      ReadFrom(source_, exact, {from_ns, to_ns});
      std::optional<NameSummary> digested;
      const auto feed = ReadDigested(
          {from_ns, to_ns, UINT64_MAX, DigestUse::kSums}, [&](DigestFeed* digests) -> Exporter& {
            return digested.emplace(by, NameSummary::Window{from_ns, to_ns}, digests);
          });
      EXPECT_EQ(WithoutReading(digested->Json(true), has_self),
                WithoutReading(exact.Json(true), has_self))
          << from_ns - kBase << " to " << to_ns - kBase;
    }
  }

  // Returns the counts of a search's answer: ranks, density and total.
  struct Counts {
    std::string total_and_ranks;
    uint64_t in_density = 0;
  };
  static Counts CountsOf(const std::string& json) {
    Counts counts;
    const std::string density = "\"density\":[";
    const size_t total = json.find("\"total\":");
    const size_t bins = json.find(density);
    if (total == std::string::npos || bins == std::string::npos) return counts;
    counts.total_and_ranks = json.substr(total, bins - total);
    const size_t begin = bins + density.size();
    std::istringstream numbers(json.substr(begin, json.find(']', begin) - begin));
    for (std::string number; std::getline(numbers, number, ',');) {
      counts.in_density += std::stoull(number);
    }
    return counts;
  }

  void CompareSearches(uint64_t from_ns, uint64_t to_ns, const std::string& query) {
    EventCollector::Options options{.from_ns = from_ns, .to_ns = to_ns, .is_search = true};
    options.query = *EventQuery::Parse(query);
    EventCollector exact(options);
    ReadFrom(source_, exact, {from_ns, to_ns});
    std::optional<EventCollector> digested;
    const auto feed = ReadDigested({from_ns, to_ns, (to_ns - from_ns) / 4, DigestUse::kSums},
                                   [&](DigestFeed* digests) -> Exporter& {
                                     EventCollector::Options counting = options;
                                     counting.limit = 0;
                                     counting.digests = digests;
                                     return digested.emplace(std::move(counting));
                                   });
    const Counts expected = CountsOf(exact.Json(true, 0));
    const Counts actual = CountsOf(digested->Json(true, 0));
    EXPECT_EQ(actual.total_and_ranks, expected.total_and_ranks) << query;
    EXPECT_EQ(actual.in_density, expected.in_density) << query;
    EXPECT_FALSE(actual.total_and_ranks.empty());
  }

  // The values of a map by row and column, with 0 where nothing is known.
  static std::vector<std::vector<double>> ValuesOf(const std::string& map, size_t rows,
                                                   size_t columns) {
    uint32_t length = 0;
    std::memcpy(&length, map.data() + 4, sizeof length);
    const size_t at = (8 + length + 7) / 8 * 8;
    EXPECT_EQ(map.size(), at + rows * columns * sizeof(float));
    std::vector<std::vector<double>> values(rows, std::vector<double>(columns));
    for (size_t i = 0; i < rows * columns; ++i) {
      float value = 0;
      std::memcpy(&value, map.data() + at + i * sizeof value, sizeof value);
      values[i / columns][i % columns] = std::isnan(value) ? 0 : value;
    }
    return values;
  }

  // Nothing is more than a bin from its place: what a map has up to a column is between what the
  // events have up to the column before and up to the one behind it. The same of what is missing at
  // the window's ends.
  void CompareMaps(BusyMap::Metric metric, uint64_t from_ns, uint64_t column_ns, uint32_t columns) {
    const uint64_t to_ns = from_ns + column_ns * columns;
    const HeatWindow wide{from_ns - column_ns, to_ns + column_ns, columns + 2};
    BusyMap exact(metric, wide);
    ReadFrom(source_, exact, {wide.from_ns, wide.to_ns});
    std::optional<BusyMap> digested;
    const auto feed = ReadDigested(
        {from_ns, to_ns, column_ns, DigestUse::kBins}, [&](DigestFeed* digests) -> Exporter& {
          return digested.emplace(metric, HeatWindow{from_ns, to_ns, columns}, digests);
        });
    ASSERT_LE(feed->bin_max_ns(), column_ns) << "choose wider columns";
    const size_t rows = source_.description().streams.size();
    const auto expected = ValuesOf(exact.Take(), rows, columns + 2);
    const auto actual = ValuesOf(digested->Take(), rows, columns);
    for (size_t row = 0; row < rows; ++row) {
      double sum = 0;
      double least = 0;
      double most = expected[row][0] + expected[row][1];
      for (size_t column = 0; column < columns; ++column) {
        sum += actual[row][column];
        most += expected[row][column + 2];
        if (column > 0) least += column > 1 ? expected[row][column] : 0;
        const double rounding = metric == BusyMap::Metric::kEvents ? 0 : 1e-3 * columns;
        EXPECT_GE(sum, least - rounding) << row << " " << column;
        EXPECT_LE(sum, most + rounding) << row << " " << column;
      }
      if (HasFailure()) return;
    }
  }

  void CompareSumsEverywhere(int windows, bool has_self) {
    for (int i = 0; i < windows; ++i) {
      const uint64_t from_ns = i == 0 ? kBase : kBase + random_() % kLengthNs;
      const uint64_t to_ns =
          i == 0 ? kBase + 2 * kLengthNs : from_ns + 1 + random_() % (2 * kLengthNs);
      CompareSummaries(from_ns, to_ns, has_self);
      CompareSearches(from_ns, to_ns, "name:nrt_execute");
      CompareSearches(from_ns, to_ns, "-type:cc_running rank:1-2");
      if (HasFailure()) return;
    }
  }

  void CompareMapsEverywhere(int windows) {
    for (int i = 0; i < windows; ++i) {
      const uint64_t from_ns = i == 0 ? kBase : kBase + random_() % (kLengthNs / 2);
      const uint64_t column_ns = 5'000'000 + random_() % 20'000'000;
      for (const auto metric :
           {BusyMap::Metric::kBusy, BusyMap::Metric::kWait, BusyMap::Metric::kEvents}) {
        CompareMaps(metric, from_ns, column_ns, i == 0 ? 400 : 30 + random_() % 60);
        if (HasFailure()) return;
      }
    }
  }

  // Spans of a few levels that enclose each other, over chunks and digests.
  std::vector<ScriptEvent> MakeNestedEvents(uint64_t outer) {
    std::vector<ScriptEvent> events;
    uint64_t id = 0;
    for (uint64_t i = 0; i < outer; ++i) {
      const uint64_t at_ns = kBase + i * (kLengthNs / outer);
      const uint64_t length_ns = kLengthNs / outer - 1 - random_() % 1'000;
      const std::string type = i % 2 == 0 ? "nrt_execute" : "cc_running";
      const uint64_t outer_id = ++id;
      events.push_back({at_ns, Phase::kStart, type, outer_id, 7});
      const uint64_t inner = 1 + random_() % 300;
      for (uint64_t j = 0; j < inner; ++j) {
        const uint64_t begin_ns = at_ns + 1 + j * (length_ns / inner);
        ++id;
        events.push_back({begin_ns, Phase::kStart, "nrt_load", id, 7});
        events.push_back(
            {begin_ns + 1 + random_() % (length_ns / inner - 2), Phase::kStop, "nrt_load", id, 7});
      }
      events.push_back({at_ns + length_ns, Phase::kStop, type, outer_id, 7});
    }
    std::ranges::stable_sort(events, {}, &ScriptEvent::at_ns);
    return events;
  }

  std::unique_ptr<Store> store_ = OpenInMemory();
  std::mt19937_64 random_{20261128};
  CaptureClocks clocks_;
  uint64_t shift_ns_ = 0;
  uint64_t lost_percent_ = 0;
  uint64_t open_percent_ = 0;
  bool chunks_overlap_ = false;
  uint64_t digested_chunks_ = 0;  // of all views
  std::map<uint32_t, uint64_t> retry_at_;
  std::map<uint32_t, uint64_t> left_;
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

TEST_F(DigestViewTest, SummariesAndCountsAreThoseOfTheEvents) {
  for (uint32_t core = 0; core < 3; ++core) AddChunks(AddCore(core, core), MakeEvents(3'000), 0);
  Build(/*has_ended=*/true);
  CompareSumsEverywhere(25, /*has_self=*/false);
  EXPECT_GT(digested_chunks_, 0u);
}

TEST_F(DigestViewTest, SummariesOfSpansWithoutStopOrStart) {
  open_percent_ = 1;
  lost_percent_ = 1;
  for (uint32_t core = 0; core < 2; ++core) AddChunks(AddCore(core, core), MakeEvents(3'000), 0);
  Build(/*has_ended=*/true);
  CompareSumsEverywhere(25, /*has_self=*/false);
  EXPECT_GT(digested_chunks_, 0u);
}

TEST_F(DigestViewTest, SummariesOfARunningCaptureWithLateChunks) {
  for (uint32_t core = 0; core < 3; ++core) AddChunks(AddCore(core, core), MakeEvents(3'000), 8);
  Build(/*has_ended=*/false);
  CompareSumsEverywhere(25, /*has_self=*/false);
  EXPECT_GT(digested_chunks_, 0u);
}

TEST_F(DigestViewTest, OwnTimeCrossesDigestsAndTheWindow) {
  for (uint32_t core = 0; core < 2; ++core) AddChunks(AddCore(core, core), MakeNestedEvents(40), 0);
  Build(/*has_ended=*/true);
  CompareSumsEverywhere(40, /*has_self=*/true);
  EXPECT_GT(digested_chunks_, 0u);
}

TEST_F(DigestViewTest, MapsAreThoseOfTheEventsButForABin) {
  for (uint32_t core = 0; core < 3; ++core) AddChunks(AddCore(core, core), MakeEvents(4'000), 0);
  Build(/*has_ended=*/true);
  CompareMapsEverywhere(25);
  EXPECT_GT(digested_chunks_, 0u);
}

TEST_F(DigestViewTest, MapsOfARunningCaptureReadWhatHasNoDigest) {
  open_percent_ = 1;
  lost_percent_ = 1;
  for (uint32_t core = 0; core < 2; ++core) AddChunks(AddCore(core, core), MakeEvents(4'000), 0);
  Build(/*has_ended=*/false);
  CompareMapsEverywhere(25);
  EXPECT_GT(digested_chunks_, 0u);
}

// Columns of whole bins: then nothing is moved at all.
TEST_F(DigestViewTest, MapsAreExactWhereBinsNestInColumns) {
  for (uint32_t core = 0; core < 2; ++core) AddChunks(AddCore(core, core), MakeEvents(4'000), 0);
  Build(/*has_ended=*/true);
  constexpr uint64_t kColumnNs = uint64_t{1} << 24;
  constexpr uint32_t kColumns = 80;
  const uint64_t from_ns = kBase / kColumnNs * kColumnNs;
  const HeatWindow window{from_ns, from_ns + kColumnNs * kColumns, kColumns};
  for (const auto metric : {BusyMap::Metric::kBusy, BusyMap::Metric::kEvents}) {
    BusyMap exact(metric, window);
    ReadFrom(source_, exact, {window.from_ns, window.to_ns});
    std::optional<BusyMap> digested;
    ReadDigested({window.from_ns, window.to_ns, kColumnNs, DigestUse::kBins},
                 [&](DigestFeed* digests) -> Exporter& {
                   return digested.emplace(metric, window, digests);
                 });
    const auto expected = ValuesOf(exact.Take(), 2, kColumns);
    const auto actual = ValuesOf(digested->Take(), 2, kColumns);
    for (size_t i = 0; i < 2 * kColumns; ++i) {
      EXPECT_NEAR(actual[i / kColumns][i % kColumns], expected[i / kColumns][i % kColumns], 1e-3);
    }
  }
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
  absl::StatusOr<CaptureClocks> ClocksOf(const CaptureRecord&) override { return CaptureClocks(); }

  std::unique_ptr<Store> store_ = OpenInMemory();
  CaptureRecord record_;
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
