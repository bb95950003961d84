// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/duration_stats.h"

#include <gmock/gmock.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "aggregator/derive/derive_fixture.h"
#include "aggregator/timeline/event_script.h"
#include "aggregator/timeline/timeline_reader.h"
#include "lib/trace/event.h"

namespace neurontrace {
namespace {

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
  EXPECT_EQ(rows[0].anomalous, 5u);
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
