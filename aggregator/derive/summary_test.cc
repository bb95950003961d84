// SPDX-License-Identifier: Apache-2.0
// Goal: a summary holds what the parts found, of the streams and the window that were read. Method:
// a small capture of two ranks.
#include "aggregator/derive/summary.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "aggregator/derive/derive_fixture.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

class SummaryTest : public DeriveTest {
 protected:
  CaptureSummary Summarize(TimelineOptions options = {}, SummaryOptions summary_options = {}) {
    std::optional<CaptureSummaryBuilder> builder;
    const TimelineFilter filter = options.filter;
    Read(
        [&](const TimelineReader& reader) {
          builder.emplace(reader.capture(), reader.streams(), filter, summary_options);
        },
        [&](const TimelineBatch& batch) { builder->Take(batch); }, std::move(options));
    return builder->Finish();
  }
};

TEST_F(SummaryTest, HoldsWhatThePartsFound) {
  AddStream(Core("i-0", 1, 0), Rank(0, 2));
  AddStream(Core("i-1", 1, 0), Rank(1, 2));
  for (uint64_t step = 0; step < 5; ++step) {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      const uint64_t at = kBase + step * kMs + rank * 1000;
      Running(rank, step, 0, at, at + 500'000 + 1000 * step);
      Collects(rank, Operation(step, 1, rank), at + 100, kBase + step * kMs + 9000);
    }
  }
  source_.stream(1).losses = {{.place = LossPlace::kRuntimeRing, .events = 12}};
  const CaptureSummary summary = Summarize();
  EXPECT_EQ(summary.instances, 2u);
  EXPECT_EQ(summary.workers, 2u);
  EXPECT_EQ(summary.cores, 2u);
  EXPECT_EQ(summary.begin_ns, kBase);
  EXPECT_EQ(summary.end_ns, kBase + 4 * kMs + 505'000);
  ASSERT_EQ(summary.streams.size(), 2u);
  EXPECT_EQ(summary.streams[1].worker_gid, 1);
  EXPECT_EQ(summary.streams[1].lost, 12u);
  EXPECT_EQ(summary.streams[1].clock_bound_ns, std::nullopt);
  ASSERT_EQ(summary.losses.size(), 1u);
  ASSERT_EQ(summary.event_types.size(), 2u);
  EXPECT_EQ(summary.event_types[0].event_type, "cc_running");
  EXPECT_EQ(summary.event_types[0].spans.count(), 10u);
  ASSERT_EQ(summary.executions.size(), 2u);
  EXPECT_EQ(summary.executions[0].durations.count(), 5u);
  ASSERT_FALSE(summary.slowest.empty());
  EXPECT_EQ(summary.slowest[0].number, 4u);
  EXPECT_EQ(summary.slowest[0].stream, 0u);
  ASSERT_EQ(summary.busy.size(), 2u);
  EXPECT_EQ(summary.busy[0].busy_ns, 5 * 500'000u + 10'000u);
  ASSERT_EQ(summary.steps.size(), 2u);
  EXPECT_EQ(summary.steps[0].last_number, 4u);
  EXPECT_EQ(summary.steps[0].intervals.max_ns(), kMs);
  ASSERT_EQ(summary.communicators.size(), 1u);
  EXPECT_EQ(summary.communicators[0].collectives, 5u);
  EXPECT_EQ(summary.communicators[0].arrival_skew.max_ns(), 1000u);
  EXPECT_EQ(summary.communicators[0].skew_unbounded, 5u);
  ASSERT_EQ(summary.stragglers.size(), 2u);
  EXPECT_EQ(summary.worst_collectives.size(), 5u);
  EXPECT_TRUE(summary.warnings.empty());
}

TEST_F(SummaryTest, KeepsTheSlowestAlone) {
  const uint32_t core = AddStream(Core("i-0", 1, 0));
  for (uint64_t i = 0; i < 50; ++i) {
    Running(core, i, 0, kBase + i * kMs, kBase + i * kMs + 100 + i * 37 % 50);
  }
  const CaptureSummary summary = Summarize({}, {.slowest_max = 3});
  ASSERT_EQ(summary.slowest.size(), 3u);
  EXPECT_EQ(summary.slowest[0].end_ns - summary.slowest[0].start_ns, 149u);
  EXPECT_EQ(summary.slowest[2].end_ns - summary.slowest[2].start_ns, 147u);
}

TEST_F(SummaryTest, AWindowCutsWhatIsBusy) {
  const uint32_t core = AddStream(Core("i-0", 1, 0));
  Running(core, 1, 0, kBase, kBase + 1000);
  Running(core, 2, 0, kBase + 2000, kBase + 3000);
  TimelineOptions options;
  options.filter.window_start_ns = kBase + 900;
  options.filter.window_end_ns = kBase + 2400;
  const CaptureSummary summary = Summarize(std::move(options));
  EXPECT_EQ(summary.begin_ns, kBase + 900);
  EXPECT_EQ(summary.window_ns(), 1500u);
  ASSERT_EQ(summary.busy.size(), 1u);
  EXPECT_EQ(summary.busy[0].busy_ns, 500u);
}

TEST_F(SummaryTest, OfNothingIsEmpty) {
  AddStream(Core("i-0", 1, 0));
  const CaptureSummary summary = Summarize();
  EXPECT_EQ(summary.window_ns(), 0u);
  EXPECT_TRUE(summary.durations.empty());
  EXPECT_TRUE(summary.communicators.empty());
}

TEST_F(SummaryTest, WithoutAClocksBoundASkewIsUnboundedAndNothingContradictory) {
  AddStream(Core("i-0", 1, 0), Rank(0, 2));
  AddStream(Core("i-1", 1, 0), Rank(1, 2));
  Collects(0, Operation(7, 1, 0), kBase, kBase + 1000);
  Collects(1, Operation(7, 1, 1), kBase + 5000, kBase + 6000);
  const CaptureSummary summary = Summarize();
  EXPECT_EQ(summary.communicators[0].collectives, 1u);
  EXPECT_EQ(summary.communicators[0].skew_unbounded, 1u);
  EXPECT_EQ(summary.communicators[0].disjoint, 0u);
}

TEST_F(SummaryTest, SaysWhatContradictsItself) {
  AddStream(Core("i-0", 1, 0), Rank(0, 2));
  AddStream(Core("i-0", 2, 1), Rank(1, 2));
  Collects(0, Operation(7, 1, 0), kBase, kBase + 1000);
  Collects(1, Operation(7, 1, 1), kBase + 5000, kBase + 6000);
  const CaptureSummary summary = Summarize();
  EXPECT_EQ(summary.communicators[0].disjoint, 1u);
  EXPECT_TRUE(summary.worst_collectives.empty());
  ASSERT_EQ(summary.warnings.size(), 1u);
  EXPECT_THAT(summary.warnings[0], HasSubstr("cannot have met"));
}

// Goal: quantiles are within their promise and nothing is counted twice. Method: known values, and
// random ones against sorting.

TEST(DurationSketchTest, SmallValuesAreExact) {
  DurationSketch sketch;
  for (uint64_t i = 0; i < 16; ++i) sketch.Add(i);
  EXPECT_EQ(sketch.count(), 16u);
  EXPECT_EQ(sketch.sum_ns(), 120u);
  EXPECT_EQ(sketch.QuantileNs(0), 0u);
  EXPECT_EQ(sketch.QuantileNs(0.5), 7u);
  EXPECT_EQ(sketch.QuantileNs(1), 15u);
}

TEST(DurationSketchTest, QuantilesAreWithinOneThirtySecond) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> length(12, 3);
  DurationSketch sketch;
  DurationSketch odd;
  DurationSketch even;
  std::vector<uint64_t> all;
  for (int i = 0; i < 20'000; ++i) {
    all.push_back(static_cast<uint64_t>(length(random)));
    sketch.Add(all.back());
    (i % 2 == 0 ? even : odd).Add(all.back());
  }
  even.Merge(odd);
  std::sort(all.begin(), all.end());
  for (const double q : {0.001, 0.1, 0.5, 0.9, 0.99, 0.9999}) {
    const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(all.size())));
    const auto truth = static_cast<double>(all[rank - 1]);
    EXPECT_NEAR(static_cast<double>(sketch.QuantileNs(q)), truth, truth / 32 + 1) << q;
    EXPECT_EQ(sketch.QuantileNs(q), even.QuantileNs(q)) << "merging changes nothing";
  }
}

TEST(DurationSketchTest, TheLargestValuesNeitherWrapNorLeaveTheirBins) {
  DurationSketch sketch;
  sketch.Add(UINT64_MAX);
  sketch.Add(UINT64_MAX - 1);
  sketch.Add(0);
  EXPECT_EQ(sketch.sum_ns(), UINT64_MAX);
  EXPECT_EQ(sketch.max_ns(), UINT64_MAX);
  EXPECT_EQ(sketch.QuantileNs(1), UINT64_MAX);
  EXPECT_GT(sketch.QuantileNs(0.6), UINT64_MAX - UINT64_MAX / 16);
  EXPECT_EQ(DurationSketch().QuantileNs(0.5), 0u);
  EXPECT_EQ(DurationSketch().min_ns(), 0u);
}

class DurationStatsTest : public DeriveTest {};

TEST_F(DurationStatsTest, CountsByTypeAndStream) {
  const uint32_t a = AddStream(Core("i-a", 1, 0));
  const uint32_t b = AddStream(Core("i-a", 1, 1));
  script(a).Span("nrt_execute", kBase, kBase + 10, 1);
  script(a).Span("nrt_execute", kBase + 20, kBase + 50, 2);
  script(a).Start("nrt_execute", kBase + 60, 3, 7);
  script(a).Stop("nrt_execute", kBase + 61, 4, 7);
  script(a).Instant("hw_notify", kBase + 70);
  script(b).Span("nrt_execute", kBase, kBase + 7, 1);
  CloseChunk(b);
  script(b).Start("over", kBase + 100, 9, 7);
  CloseChunk(b);
  script(b).Stop("over", kBase + 140, 9, 7, {{"note", "x"}});
  DurationStats stats;
  Read([](const TimelineReader&) {}, [&](const TimelineBatch& batch) { stats.Take(batch); });
  const auto rows = stats.Finish();
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].event_type, "hw_notify");
  EXPECT_EQ(rows[0].instants, 1u);
  EXPECT_EQ(rows[1].event_type, "nrt_execute");
  EXPECT_EQ(rows[1].stream, a);
  EXPECT_EQ(rows[1].spans.count(), 2u);
  EXPECT_EQ(rows[1].spans.sum_ns(), 40u);
  EXPECT_EQ(rows[1].open, 1u);
  EXPECT_EQ(rows[1].start_lost, 1u);
  EXPECT_EQ(rows[2].stream, b);
  EXPECT_EQ(rows[2].spans.max_ns(), 7u);
  EXPECT_EQ(rows[3].spans.count(), 1u) << "a stop in another chunk is not an event";
  EXPECT_EQ(rows[3].spans.sum_ns(), 40u);
  EXPECT_EQ(stats.overflow(), 0u);
}

TEST_F(DurationStatsTest, LengthsThatCannotBeAreCountedApart) {
  const uint32_t a = AddStream(Core("i-a", 1, 0));
  const EventScript::Attribute mark{std::string(kDurationMadeUpKey), "negative", KeyScope::kTop};
  const auto complete = [&](uint64_t at_ns, EventScript::Attributes attributes) {
    script(a).Complete("kernel", kBase + at_ns, 0, 7, std::move(attributes));
  };
  complete(0, {{"dur_ns", uint64_t{10}, KeyScope::kTop}});
  for (uint64_t i = 1; i < 5; ++i) {
    complete(i, {{"dur_ns", uint64_t{0}, KeyScope::kTop}, mark});
  }
  // An argument of that name says nothing.
  complete(5, {{"dur_ns", uint64_t{10}, KeyScope::kTop}, {mark.name, "mine", KeyScope::kData}});
  script(a).Add("kernel", Phase::kBegin, kBase + 20, 1, 7);
  script(a).Add("kernel", Phase::kEnd, kBase + 20, 1, 7, {mark});
  DurationStats stats;
  Read([](const TimelineReader&) {}, [&](const TimelineBatch& batch) { stats.Take(batch); });
  const auto rows = stats.Finish();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].odd, 5u);
  EXPECT_EQ(rows[0].count(), 7u);
  EXPECT_EQ(rows[0].spans.count(), 2u);
  EXPECT_EQ(rows[0].spans.sum_ns(), 20u);
  EXPECT_EQ(rows[0].spans.QuantileNs(0.5), 10u);
}

TEST_F(DurationStatsTest, TooManyTypesAreCountedTogether) {
  const uint32_t a = AddStream(Core("i-a", 1, 0));
  const size_t types = DurationStats::kTypesMax + 100;
  for (size_t i = 0; i < types; ++i) {
    script(a).Instant("type" + std::to_string(i), kBase + i);
    if (i % 1000 == 999) CloseChunk(a);
  }
  DurationStats stats;
  Read([](const TimelineReader&) {}, [&](const TimelineBatch& batch) { stats.Take(batch); });
  uint64_t instants = 0;
  uint64_t other = 0;
  for (const DurationRow& row : stats.Finish()) {
    instants += row.instants;
    if (row.event_type == DurationStats::kOther) other += row.instants;
  }
  EXPECT_EQ(instants, types);
  EXPECT_EQ(other, 101u);
  EXPECT_EQ(stats.overflow(), 101u);
}

}  // namespace
}  // namespace neurontrace
