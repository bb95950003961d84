// SPDX-License-Identifier: Apache-2.0
#include "lib/base/clean_text.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

TEST(CleanText, LeavesGoodTextAlone) {
  for (const char* text :
       {"", "python3 train.py --lr 1e-4", "größe", "日本語", "\xf0\x9f\x98\x80"}) {
    EXPECT_EQ(CleanText(text, 100), text);
  }
}

TEST(CleanText, ReplacesInvalidBytes) {
  EXPECT_EQ(CleanText("a\nb\x7f", 100), "a?b?");
  EXPECT_EQ(CleanText("a\xff\x80z", 100), "a??z");
  EXPECT_EQ(CleanText("\xc0\xaf", 100), "??");            // overlong
  EXPECT_EQ(CleanText("\xed\xa0\x80", 100), "???");       // half a surrogate pair
  EXPECT_EQ(CleanText("\xf4\x90\x80\x80", 100), "????");  // over U+10FFFF
  EXPECT_EQ(CleanText("\xe6\x97", 100), "??");            // cut
  EXPECT_EQ(CleanText({"a\0b", 3}, 100), "a?b");
}

TEST(CleanText, ReplacesEightBitControls) {
  EXPECT_EQ(CleanText("a\xc2\x9b"
                      "2J",
                      100),
            "a?2J");
  EXPECT_EQ(CleanText("\xc2\x80\xc2\x9f\xc2\xa0", 100), "??\xc2\xa0");  // U+00A0 is a space
}

TEST(CleanText, CutsBetweenCharacters) {
  EXPECT_EQ(CleanText("日本語", 6), "日本");
  EXPECT_EQ(CleanText("日本語", 5), "日");
  EXPECT_EQ(CleanText("abc", 2), "ab");
  EXPECT_EQ(CleanText("abc", 0), "");
}

}  // namespace
}  // namespace neurontrace
