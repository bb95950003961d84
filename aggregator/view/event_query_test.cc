// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/event_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/trace/view_limits.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using Texts = std::vector<std::pair<std::string, std::string>>;

const EventQuery::Event kEvent{.name = "AllReduce_17",
                               .type = "cc_running",
                               .category = "neuron_hw",
                               .duration_ns = 12'000'000,
                               .place = {.worker_gid = 13, .core = 5}};
const Texts kTexts = {{"model_name", "resnet-50"}, {"op_id", "4"}};

bool Finds(std::string_view text, const EventQuery::Event& event = kEvent) {
  const auto query = EventQuery::Parse(text);
  EXPECT_TRUE(query.ok()) << query.status();
  return query.ok() && query->MatchesWithoutArguments(event) &&
         query->MatchesArguments(event, kTexts);
}

std::string QueryErrorOf(std::string_view text) {
  return std::string(EventQuery::Parse(text).status().message());
}

TEST(EventQueryTest, EmptyQueryFindsEverything) {
  EXPECT_TRUE(Finds(""));
  EXPECT_TRUE(Finds("  "));
}

TEST(EventQueryTest, WordsMatchNamesAndArgumentsInEitherCase) {
  EXPECT_TRUE(Finds("allreduce"));
  EXPECT_TRUE(Finds("RESNET"));
  EXPECT_TRUE(Finds("\"net-5\" reduce"));
  EXPECT_FALSE(Finds("allgather"));
  EXPECT_FALSE(Finds("allreduce allgather"));
}

TEST(EventQueryTest, MinusExcludes) {
  EXPECT_FALSE(Finds("-resnet"));
  EXPECT_TRUE(Finds("-vgg"));
  EXPECT_FALSE(Finds("-rank:13"));
  EXPECT_TRUE(Finds("-rank:14"));
}

TEST(EventQueryTest, LengthsHaveUnits) {
  EXPECT_TRUE(Finds("dur>10ms"));
  EXPECT_TRUE(Finds("dur>=12000us"));
  EXPECT_FALSE(Finds("dur>0.013s"));
  EXPECT_TRUE(Finds("dur<12000000"));
  EXPECT_FALSE(Finds("dur<5us"));
}

TEST(EventQueryTest, PlacesAreNumbersOrRanges) {
  EXPECT_TRUE(Finds("rank:13 core:5"));
  EXPECT_TRUE(Finds("rank:8-15"));
  EXPECT_FALSE(Finds("rank:14-20"));
  EXPECT_FALSE(Finds("core:4"));
}

TEST(EventQueryTest, EventsWithoutRankAreInNoRange) {
  EventQuery::Event event = kEvent;
  event.place = {};
  EXPECT_FALSE(Finds("rank:0-4000000000", event));
  EXPECT_TRUE(Finds("-rank:13", event));
}

TEST(EventQueryTest, WholeTextsAreCompared) {
  EXPECT_TRUE(Finds("name:AllReduce_17 type:cc_running cat:neuron_hw arg:op_id=4"));
  EXPECT_FALSE(Finds("name:AllReduce"));
  EXPECT_FALSE(Finds("arg:op_id=40"));
}

TEST(EventQueryTest, QuotationMarksHoldATermTogether) {
  EventQuery::Event event = kEvent;
  event.name = "all reduce";
  EXPECT_TRUE(Finds("name:\"all reduce\"", event));
  EXPECT_FALSE(Finds("-\"all reduce\"", event));
  EXPECT_TRUE(Finds("\"all reduce\" dur>10ms", event));
}

TEST(EventQueryTest, SkipsStreamsThatCannotMatch) {
  const auto query = EventQuery::Parse("rank:3 dur>1ms");
  ASSERT_TRUE(query.ok());
  EXPECT_FALSE(query->CanMatchAt({.worker_gid = 4}));
  EXPECT_TRUE(query->CanMatchAt({.worker_gid = 3}));
}

TEST(EventQueryTest, ErrorsShowACorrectTerm) {
  EXPECT_THAT(QueryErrorOf("dur>fast"), HasSubstr("dur>10ms"));
  EXPECT_THAT(QueryErrorOf("rank:x"), HasSubstr("rank:8-15"));
  EXPECT_THAT(QueryErrorOf("rank:9-8"), HasSubstr("rank:8-15"));
  EXPECT_THAT(QueryErrorOf("arg:model"), HasSubstr("arg:model=resnet"));
  EXPECT_THAT(QueryErrorOf("\"open"), HasSubstr("quotation mark"));
  EXPECT_THAT(QueryErrorOf(std::string(limits::kViewQueryBytesMax + 1, 'x')),
              HasSubstr("too long"));
}

}  // namespace
}  // namespace neurontrace
