// SPDX-License-Identifier: Apache-2.0
// Goal: what a window shows adds up to the events in it, at every zoom, and spans wider than a
// pixel keep their times. Method: random captures against a count of their events.
#include "aggregator/view/span_collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "aggregator/view/view_test_support.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;

class SpanCollectorTest : public ViewFixture {
 protected:
  SpanAnswer Collect(uint64_t from_ns, uint64_t to_ns, uint32_t pixels = 1'000) {
    SpanCollector collector({.from_ns = from_ns, .to_ns = to_ns, .pixels = pixels});
    Read(collector, from_ns, to_ns);
    return collector.Take();
  }
};

uint64_t CountOf(const SpanRow& row) {
  return std::accumulate(row.spans.count.begin(), row.spans.count.end(), uint64_t{0});
}

TEST_F(SpanCollectorTest, ShowsSpansWithTimesNamesAndNesting) {
  const uint32_t core = AddCore(3, 7);
  script_.Span("outer", kBase + 100, kBase + 900, 1);
  script_.Span("inner", kBase + 200, kBase + 300, 2);
  script_.Span("inner", kBase + 400, kBase + 500, 3);
  Close(core);
  const SpanAnswer answer = Collect(kBase, kBase + 1'000);
  ASSERT_EQ(answer.rows.size(), 1u);
  const SpanRow& row = answer.rows.front();
  EXPECT_EQ(row.name, "gid7-nc3-tid7-neuron_rt");
  EXPECT_EQ(row.depth, 2u);
  EXPECT_EQ(row.events, 3u);
  EXPECT_FALSE(row.is_merged);
  EXPECT_THAT(row.spans.start, ElementsAre(100, 200, 400));
  EXPECT_THAT(row.spans.duration, ElementsAre(800, 100, 100));
  EXPECT_THAT(row.spans.depth, ElementsAre(0, 1, 1));
  EXPECT_EQ(answer.names[row.spans.name[0]], "outer");
  EXPECT_EQ(answer.names[row.spans.name[2]], "inner");
}

TEST_F(SpanCollectorTest, ClipsAtTheWindow) {
  const uint32_t core = AddCore(3, 7);
  script_.Span("long", kBase + 100, kBase + 900, 1);
  Close(core);
  const SpanAnswer answer = Collect(kBase + 200, kBase + 600);
  ASSERT_EQ(answer.rows.size(), 1u);
  const SpanColumns& spans = answer.rows.front().spans;
  EXPECT_THAT(spans.start, ElementsAre(0));
  EXPECT_THAT(spans.duration, ElementsAre(400));
  EXPECT_THAT(spans.flags, ElementsAre(kViewClippedLeft | kViewClippedRight));
}

TEST_F(SpanCollectorTest, MergedItemHasTheLongestName) {
  const uint32_t core = AddCore(3, 7);
  script_.Span("short", kBase + 10, kBase + 20, 1);
  script_.Span("longer", kBase + 30, kBase + 60, 2);
  script_.Span("short", kBase + 70, kBase + 80, 3);
  Close(core);
  const SpanAnswer answer = Collect(kBase, kBase + 100'000, 100);
  ASSERT_EQ(answer.rows.size(), 1u);
  const SpanRow& row = answer.rows.front();
  EXPECT_TRUE(row.is_merged);
  EXPECT_THAT(row.spans.count, ElementsAre(3));
  EXPECT_THAT(row.spans.start, ElementsAre(10));
  EXPECT_THAT(row.spans.duration, ElementsAre(70));
  EXPECT_EQ(answer.names[row.spans.name[0]], "longer");
}

// The property that other viewers do not promise: counts add up at every zoom.
TEST_F(SpanCollectorTest, CountsAddUpAtEveryZoom) {
  std::mt19937_64 random(20261127);
  struct Event {
    uint64_t start_ns;
    uint64_t end_ns;
  };
  std::vector<Event> events;
  for (uint32_t core = 0; core < 3; ++core) {
    const uint32_t stream = AddCore(core, core);
    uint64_t at_ns = kBase;
    for (uint64_t id = 1; id <= 2'000; ++id) {
      at_ns += random() % 3'000;
      const uint64_t length_ns = random() % 7 == 0 ? random() % 200'000 : random() % 500;
      script_.Start("work", at_ns, id, 7);
      script_.Stop("work", at_ns + length_ns, id, 7);
      events.push_back({at_ns, at_ns + length_ns});
      if (id % 500 == 0) Close(stream);
    }
  }
  for (int i = 0; i < 200; ++i) {
    const uint64_t from_ns = kBase + random() % 2'000'000;
    const uint64_t to_ns = from_ns + 1 + random() % (i % 2 == 0 ? 2'000'000 : 5'000);
    const auto pixels = static_cast<uint32_t>(1 + random() % 3'000);
    const SpanAnswer answer = Collect(from_ns, to_ns, pixels);
    uint64_t counted = 0;
    for (const SpanRow& row : answer.rows) {
      EXPECT_EQ(CountOf(row), row.events);
      EXPECT_TRUE(std::ranges::is_sorted(row.spans.start));
      counted += row.events;
    }
    const auto expected = std::ranges::count_if(events, [&](const Event& event) {
      return event.start_ns < to_ns &&
             (event.end_ns > from_ns || (event.end_ns == from_ns && event.start_ns == from_ns));
    });
    EXPECT_EQ(counted, static_cast<uint64_t>(expected)) << from_ns << " " << to_ns << " " << pixels;
    EXPECT_TRUE(answer.cut.empty()) << answer.cut;
  }
}

TEST_F(SpanCollectorTest, CoarsensWhereThereAreTooManyItems) {
  const uint32_t core = AddCore(3, 7);
  // Spans as wide as a pixel of an enormous page are not merged before the limit is reached.
  const uint64_t spans = limits::kViewItemsMax + limits::kViewItemsMax / 4;
  for (uint64_t id = 0; id < spans; ++id) {
    script_.Start("work", kBase + id * 10, id + 1, 7);
    script_.Stop("work", kBase + id * 10 + 5, id + 1, 7);
    if (id % 4'000 == 3'999) Close(core);
  }
  Close(core);
  const SpanAnswer answer =
      Collect(kBase, kBase + spans * 10, static_cast<uint32_t>(limits::kViewPixelsMax));
  ASSERT_EQ(answer.rows.size(), 1u);
  EXPECT_EQ(CountOf(answer.rows.front()), spans);
  EXPECT_LE(answer.rows.front().spans.size(), limits::kViewItemsMax);
}

// What was before the window is of no use to spans, and costs as much as the window.
TEST_F(SpanCollectorTest, ReadsAChunkOnce) {
  const uint32_t core = AddCore(3, 7);
  script_.Span("kbl_exec_pre", kBase + 10, kBase + 20, 1, 7, {{"exec_id", uint64_t{5}}});
  script_.Span("nc_exec_running", kBase + 100, kBase + 900, 2, 0, {{"exec_id", uint64_t{5}}});
  Close(core);
  const SpanAnswer answer = Collect(kBase + 200, kBase + 600);
  ASSERT_EQ(answer.rows.size(), 1u);
  EXPECT_EQ(answer.rows.front().events, 1u);
  EXPECT_EQ(source_.chunks_read(), 1u);
}

TEST_F(SpanCollectorTest, CountersHaveTheUnitOfTheirName) {
  const uint32_t core = AddCore(3, 7);
  script_.Add("pool", Phase::kCounter, kBase + 100, 0, 0,
              {{"used_bytes", uint64_t{5}}, {"waiting", uint64_t{3}}});
  Close(core);
  const SpanAnswer answer = Collect(kBase, kBase + 1'000);
  ASSERT_EQ(answer.rows.size(), 2u);
  EXPECT_EQ(answer.rows[0].unit, "B");
  EXPECT_EQ(answer.rows[1].unit, "");
  EXPECT_NE(EncodeSpans(answer, 1).find(R"("unit":"B","max":5)"), std::string::npos);
}

TEST_F(SpanCollectorTest, EncodedColumnsAreAligned) {
  const uint32_t core = AddCore(3, 7);
  script_.Span("outer", kBase + 100, kBase + 900, 1);
  Close(core);
  const std::string bytes = EncodeSpans(Collect(kBase, kBase + 1'000), 42);
  ASSERT_TRUE(bytes.starts_with("NTV1"));
  EXPECT_EQ(bytes.size() % 8, 0u);
  EXPECT_NE(bytes.find("\"version\":\"42\""), std::string::npos);
  EXPECT_NE(bytes.find("\"items\":1"), std::string::npos);
}

}  // namespace
}  // namespace neurontrace
