// SPDX-License-Identifier: Apache-2.0
#include "lib/base/number_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NumberRanges, JoinsConsecutiveNumbers) {
  EXPECT_THAT(FindRanges({}), IsEmpty());
  EXPECT_THAT(FindRanges(std::vector<int64_t>{-1, 0, 1, 3, 5, 6}),
              ElementsAre(NumberRange{-1, 1}, NumberRange{3, 3}, NumberRange{5, 6}));
  EXPECT_THAT(FindRanges(std::vector<int64_t>{INT64_MIN, INT64_MAX}),
              ElementsAre(NumberRange{INT64_MIN, INT64_MIN}, NumberRange{INT64_MAX, INT64_MAX}));
}

TEST(NumberRanges, AreWrittenAsPeopleWriteThem) {
  const std::vector<NumberRange> ranges = {{0, 3}, {8, 8}, {12, 15}};
  EXPECT_EQ(FormatRanges({}), "");
  EXPECT_EQ(FormatRanges(ranges), "0-3, 8, 12-15");
  EXPECT_EQ(FormatRanges(ranges, 3), "0-3, 8, 12-15");
  EXPECT_EQ(FormatRanges(ranges, SIZE_MAX, ","), "0-3,8,12-15");
}

// What is left out is counted in numbers, not in ranges.
TEST(NumberRanges, CountsTheNumbersThatAreLeftOut) {
  const std::vector<NumberRange> ranges = {{0, 3}, {8, 8}, {12, 15}};
  EXPECT_EQ(FormatRanges(ranges, 1), "0-3 and 5 more");
  EXPECT_EQ(FormatRanges(std::vector<NumberRange>{{0, 0}, {2, UINT32_MAX}}, 1),
            "0 and 4294967294 more");
}

}  // namespace
}  // namespace neurontrace
