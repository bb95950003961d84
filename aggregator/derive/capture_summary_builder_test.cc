// SPDX-License-Identifier: Apache-2.0
// Goal: a summary holds what the parts found, of the streams and the window that were read. Method:
// a small capture of two ranks.
#include "aggregator/derive/capture_summary_builder.h"

#include <gmock/gmock.h>

#include <optional>

#include "aggregator/derive/derive_fixture.h"
#include "aggregator/derive/summary.h"

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

TEST_F(SummaryTest, CombinesParts) {
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
  ASSERT_EQ(summary.arrivals.size(), 2u);
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

TEST_F(SummaryTest, EmptyCaptureHasEmptySummary) {
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

TEST_F(SummaryTest, ReportsContradictions) {
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

}  // namespace
}  // namespace neurontrace
