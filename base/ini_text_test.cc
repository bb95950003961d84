// SPDX-License-Identifier: Apache-2.0
#include "base/ini_text.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

TEST(IniTextTest, TrimsBlanksTabsAndCarriageReturns) {
  EXPECT_EQ(TrimmedIni(" \ta b\r"), "a b");
  EXPECT_EQ(TrimmedIni(" \r"), "");
}

TEST(IniTextTest, CommentsBeginWithEitherSign) {
  EXPECT_TRUE(IsIniComment(""));
  EXPECT_TRUE(IsIniComment("# x"));
  EXPECT_TRUE(IsIniComment("; x"));
  EXPECT_FALSE(IsIniComment("x # y"));
}

TEST(IniTextTest, AValueEndsBeforeACommentThatFollowsABlank) {
  EXPECT_EQ(IniValueOf(" a#b # c"), "a#b");
  EXPECT_EQ(IniValueOf(" # nothing"), "");
  EXPECT_EQ(IniValueOf(" a;b\t; c"), "a;b");
}

TEST(IniTextTest, QuotesKeepWhatIsBetweenThem) {
  EXPECT_EQ(IniValueOf(" \" a # b \" ; c"), " a # b ");
  EXPECT_EQ(IniValueOf("\"open"), std::nullopt);
  EXPECT_EQ(IniValueOf("\"a\" b"), std::nullopt);
}

}  // namespace
}  // namespace neurontrace
