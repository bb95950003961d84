// SPDX-License-Identifier: Apache-2.0
// Goal: spans wait for their stops within their bounds, come out in one order, and those that are
// written without are counted.
#include "aggregator/export/waiting_spans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kLate = WaitingSpans<std::string>::kLateNs;

TimelineRecord Crossing(uint64_t span_id, uint64_t end_ns) {
  TimelineRecord record;
  record.span_id = span_id;
  record.end_ns = end_ns;
  record.flags = kStopFollows;
  return record;
}

std::vector<std::string> Warnings(const WaitingSpans<std::string>& waiting) {
  ExportSummary summary;
  waiting.Warn(summary);
  return summary.warnings;
}

TEST(WaitingSpansTest, GivesASpanToItsStopOnce) {
  WaitingSpans<std::string> waiting;
  const TimelineRecord span = Crossing(7, 100);
  ASSERT_TRUE(waiting.Admits(span, 1));
  waiting.Add(span, "span", 1);
  EXPECT_FALSE(waiting.Take(8));
  EXPECT_EQ(waiting.Take(7), "span");
  EXPECT_FALSE(waiting.Take(7));
  EXPECT_FALSE(waiting.TakeRest());
  EXPECT_THAT(Warnings(waiting), IsEmpty());
}

TEST(WaitingSpansTest, OthersDoNotWait) {
  WaitingSpans<std::string> waiting;
  TimelineRecord span = Crossing(7, 100);
  span.flags = kOpen;
  EXPECT_FALSE(waiting.Admits(span, 1));
  EXPECT_THAT(Warnings(waiting), IsEmpty());
}

TEST(WaitingSpansTest, ThoseBeyondTheirNumberOrTheirBytesAreCounted) {
  WaitingSpans<std::string> waiting({.spans = 3, .bytes = 2 << 20});
  const auto add = [&waiting](uint64_t span_id, size_t bytes) {
    const TimelineRecord span = Crossing(span_id, 100);
    if (!waiting.Admits(span, bytes)) return false;
    waiting.Add(span, "span", bytes);
    return true;
  };
  EXPECT_TRUE(add(1, 1 << 20));
  EXPECT_FALSE(add(2, (1 << 20) + 1));
  EXPECT_TRUE(add(3, 1 << 20));
  EXPECT_FALSE(add(4, 1));
  EXPECT_TRUE(add(5, 0));
  EXPECT_FALSE(add(6, 0));
  EXPECT_TRUE(waiting.Take(1));
  EXPECT_TRUE(add(7, 1 << 20)) << "what is taken out makes room";
  EXPECT_EQ(waiting.size(), 3u);
  EXPECT_THAT(Warnings(waiting),
              ElementsAre("3 spans are shown without the attributes of their stops, because more "
                          "than 3 spans or 2 MiB waited for theirs at once"));
}

TEST(WaitingSpansTest, ThoseWhoseStopDoesNotComeAreGivenOutByTheirEnds) {
  WaitingSpans<std::string> waiting;
  waiting.Add(Crossing(1, 300), "c", 0);
  waiting.Add(Crossing(2, 100), "a", 0);
  waiting.Add(Crossing(3, 200), "b", 0);
  EXPECT_FALSE(waiting.TakeLate(0));
  EXPECT_FALSE(waiting.TakeLate(100 + kLate));
  EXPECT_EQ(waiting.TakeLate(201 + kLate), "a");
  EXPECT_EQ(waiting.TakeLate(201 + kLate), "b");
  EXPECT_FALSE(waiting.TakeLate(201 + kLate));
  EXPECT_EQ(waiting.TakeRest(), "c");
  EXPECT_THAT(Warnings(waiting), ElementsAre(HasSubstr("3 spans are shown without")));
}

TEST(WaitingSpansTest, ThoseThatLeaveTheWindowAreNotCounted) {
  TimelineFilter filter;
  filter.window_end_ns = 200;
  TimelineHeader header;
  header.filter = &filter;
  WaitingSpans<std::string> waiting;
  waiting.Begin(header);
  waiting.Add(Crossing(1, 199), "inside", 0);
  waiting.Add(Crossing(2, 200), "leaves", 0);
  EXPECT_EQ(waiting.TakeRest(), "inside");
  EXPECT_EQ(waiting.TakeRest(), "leaves");
  EXPECT_THAT(Warnings(waiting), ElementsAre(HasSubstr("1 spans are shown without")));
}

}  // namespace
}  // namespace neurontrace
