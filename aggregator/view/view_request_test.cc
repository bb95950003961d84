// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/view_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string RequestErrorOf(std::string_view query) {
  return std::string(ViewRequest::Parse(query).status().message());
}

TEST(ViewRequestTest, ReadsEveryParameter) {
  const auto request = ViewRequest::Parse(
      "from=10&to=20&px=800&columns=50&limit=7&cursor=3&streams=4,7&q=a%20b+c&metric=events&by="
      "rank&lines=90&sort=worst&event=4-10-7&chain=upstream&depth=5&breadth=2");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->from_ns, 10);
  EXPECT_EQ(request->to_ns, 20);
  EXPECT_EQ(request->pixels, 800);
  EXPECT_EQ(request->columns, 50);
  EXPECT_EQ(request->limit, 7);
  EXPECT_EQ(request->cursor, 3);
  EXPECT_THAT(request->streams, ElementsAre(4, 7));
  EXPECT_EQ(request->query, "a b c");
  EXPECT_EQ(request->metric, "events");
  EXPECT_EQ(request->by, "rank");
  EXPECT_EQ(request->lines, 90);
  EXPECT_EQ(request->sort, "worst");
  EXPECT_EQ(request->event, "4-10-7");
  EXPECT_EQ(request->chain, "upstream");
  EXPECT_EQ(request->depth, 5);
  EXPECT_EQ(request->breadth, 2);
}

TEST(ViewRequestTest, EmptyQueryAsksForTheWholeCapture) {
  const auto request = ViewRequest::Parse("");
  ASSERT_TRUE(request.ok());
  EXPECT_FALSE(request->from_ns);
  EXPECT_TRUE(request->streams.empty());
}

TEST(ViewRequestTest, ErrorsNameTheParameter) {
  EXPECT_THAT(RequestErrorOf("from=now"), HasSubstr("from: 'now'"));
  EXPECT_THAT(RequestErrorOf("px=0"), HasSubstr("px: '0'"));
  EXPECT_THAT(RequestErrorOf("px=100000"), HasSubstr("px"));
  EXPECT_THAT(RequestErrorOf("lines=0"), HasSubstr("lines: '0'"));
  EXPECT_THAT(RequestErrorOf("streams=1,,2"), HasSubstr("streams"));
  EXPECT_THAT(RequestErrorOf("from=99999999999999999999"), HasSubstr("from"));
  EXPECT_THAT(RequestErrorOf("depth=33"), HasSubstr("depth: '33'"));
  EXPECT_THAT(RequestErrorOf("form=1"), HasSubstr("'form' is not a parameter"));
}

TEST(ViewRequestTest, InvalidEscapesStayAsTheyAre) {
  EXPECT_EQ(ViewRequest::Parse("q=100%")->query, "100%");
  EXPECT_EQ(ViewRequest::Parse("q=%zz")->query, "%zz");
}

}  // namespace
}  // namespace neurontrace
