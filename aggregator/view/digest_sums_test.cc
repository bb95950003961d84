// SPDX-License-Identifier: Apache-2.0
// Summaries, counts of searches, and heat maps from the sums and bins of digests, against those
// that read every event.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <sstream>

#include "aggregator/view/busy_map.h"
#include "aggregator/view/digest_view_test_support.h"
#include "aggregator/view/event_collector.h"
#include "aggregator/view/name_summary.h"

namespace neurontrace {
namespace {

class DigestSummariesTest : public DigestFixture {
 protected:
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
      ReadFrom(source_, exact, from_ns, to_ns);
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
    ReadFrom(source_, exact, from_ns, to_ns);
    std::optional<EventCollector> digested;
    const auto feed = ReadDigested({from_ns, to_ns, (to_ns - from_ns) / 4, DigestUse::kCounts},
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
    ReadFrom(source_, exact, wide.from_ns, wide.to_ns);
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
    for (int i = 0; i < Drawn(windows); ++i) {
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
    for (int i = 0; i < Drawn(windows); ++i) {
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
};

TEST_F(DigestSummariesTest, SummariesAndCountsAreThoseOfTheEvents) {
  for (uint32_t core = 0; core < 3; ++core) AddChunks(AddCore(core, core), MakeEvents(3'000), 0);
  Build(/*has_ended=*/true);
  CompareSumsEverywhere(25, /*has_self=*/false);
  EXPECT_GT(digested_chunks_, 0u);
}

TEST_F(DigestSummariesTest, SummariesOfSpansWithoutStopOrStart) {
  open_percent_ = 1;
  lost_percent_ = 1;
  for (uint32_t core = 0; core < 2; ++core) AddChunks(AddCore(core, core), MakeEvents(3'000), 0);
  Build(/*has_ended=*/true);
  CompareSumsEverywhere(25, /*has_self=*/false);
  EXPECT_GT(digested_chunks_, 0u);
}

TEST_F(DigestSummariesTest, SummariesOfARunningCaptureWithLateChunks) {
  for (uint32_t core = 0; core < 3; ++core) AddChunks(AddCore(core, core), MakeEvents(3'000), 8);
  Build(/*has_ended=*/false);
  CompareSumsEverywhere(25, /*has_self=*/false);
  EXPECT_GT(digested_chunks_, 0u);
}

TEST_F(DigestSummariesTest, OwnTimeCrossesDigestsAndTheWindow) {
  for (uint32_t core = 0; core < 2; ++core) AddChunks(AddCore(core, core), MakeNestedEvents(40), 0);
  Build(/*has_ended=*/true);
  CompareSumsEverywhere(40, /*has_self=*/true);
  EXPECT_GT(digested_chunks_, 0u);
}

TEST_F(DigestSummariesTest, MapsAreThoseOfTheEventsButForABin) {
  for (uint32_t core = 0; core < 3; ++core) AddChunks(AddCore(core, core), MakeEvents(4'000), 0);
  Build(/*has_ended=*/true);
  CompareMapsEverywhere(25);
  EXPECT_GT(digested_chunks_, 0u);
}

TEST_F(DigestSummariesTest, MapsOfARunningCaptureReadWhatHasNoDigest) {
  open_percent_ = 1;
  lost_percent_ = 1;
  for (uint32_t core = 0; core < 2; ++core) AddChunks(AddCore(core, core), MakeEvents(4'000), 0);
  Build(/*has_ended=*/false);
  CompareMapsEverywhere(25);
  EXPECT_GT(digested_chunks_, 0u);
}

// Columns of whole bins: then nothing is moved at all.
TEST_F(DigestSummariesTest, MapsAreExactWhereBinsNestInColumns) {
  for (uint32_t core = 0; core < 2; ++core) AddChunks(AddCore(core, core), MakeEvents(4'000), 0);
  Build(/*has_ended=*/true);
  constexpr uint64_t kColumnNs = uint64_t{1} << 24;
  constexpr uint32_t kColumns = 80;
  const uint64_t from_ns = kBase / kColumnNs * kColumnNs;
  const HeatWindow window{from_ns, from_ns + kColumnNs * kColumns, kColumns};
  for (const auto metric : {BusyMap::Metric::kBusy, BusyMap::Metric::kEvents}) {
    BusyMap exact(metric, window);
    ReadFrom(source_, exact, window.from_ns, window.to_ns);
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

}  // namespace
}  // namespace neurontrace
