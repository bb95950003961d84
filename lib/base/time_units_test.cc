// SPDX-License-Identifier: Apache-2.0
#include "lib/base/time_units.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

TEST(TimeUnitsTest, SumsEndAtTheRangesEnds) {
  EXPECT_EQ(AddSaturating(1, 2), 3u);
  EXPECT_EQ(AddSaturating(UINT64_MAX, 0), UINT64_MAX);
  EXPECT_EQ(AddSaturating(UINT64_MAX - 1, 1), UINT64_MAX);
  EXPECT_EQ(AddSaturating(UINT64_MAX - 1, 2), UINT64_MAX);
  EXPECT_EQ(SubtractSaturating(3, 2), 1u);
  EXPECT_EQ(SubtractSaturating(2, 2), 0u);
  EXPECT_EQ(SubtractSaturating(2, 3), 0u);
}

TEST(TimeUnitsTest, SecondsHaveOneDecimal) {
  EXPECT_EQ(FormatSeconds(0), "0.0 s");
  EXPECT_EQ(FormatSeconds(kNsPerSecond * 3 / 2), "1.5 s");
  EXPECT_EQ(FormatSeconds(90 * kNsPerSecond), "90.0 s");
}

}  // namespace
}  // namespace neurontrace
