// SPDX-License-Identifier: Apache-2.0
#include "lib/base/clean_text.h"

#include <gtest/gtest.h>

#include <string>

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

TEST(CleanText, MakesInvisibleCharactersVisible) {
  struct Case {
    const char* what;
    std::string text;
    const char* shown;
  };
  for (const Case& one : {
           Case{"soft hyphen", "a\u00adb", "a\\u00adb"},
           Case{"before the first", "\u00ac\u00ae", "\u00ac\u00ae"},
           Case{"Arabic number sign", "\u0600\u0605", "\\u0600\\u0605"},
           Case{"Arabic letter", "\u0606\u0627", "\u0606\u0627"},
           Case{"Arabic letter mark", "\u061c", "\\u061c"},
           Case{"zero-width space, joiners, marks", "\u200b\u200c\u200d\u200e\u200f",
                "\\u200b\\u200c\\u200d\\u200e\\u200f"},
           Case{"hyphen and dash", "\u2010\u2027", "\u2010\u2027"},
           Case{"line and paragraph separators", "a\u2028b\u2029", "a\\u2028b\\u2029"},
           Case{"embeddings and overrides", "\u202a\u202b\u202c\u202d\u202egnp.exe",
                "\\u202a\\u202b\\u202c\\u202d\\u202egnp.exe"},
           Case{"narrow space", "\u202f", "\u202f"},
           Case{"word joiner, invisible plus", "\u2060\u2064", "\\u2060\\u2064"},
           Case{"isolates", "\u2066\u2067\u2068\u2069", "\\u2066\\u2067\\u2068\\u2069"},
           Case{"deprecated controls", "\u206a\u206f", "\\u206a\\u206f"},
           Case{"byte order mark", "\ufeffx", "\\ufeffx"},
           Case{"annotations", "\ufff9\ufffb\ufffd", "\\ufff9\\ufffb\ufffd"},
           Case{"musical control", "\U0001d173", "\\u{1d173}"},
           Case{"tags", "\U000e0001\U000e0041\U000e007f", "\\u{e0001}\\u{e0041}\\u{e007f}"},
           Case{"beyond the last", "\U000e0100\U0010ffff", "\U000e0100\U0010ffff"},
       }) {
    const std::string shown = CleanText(one.text, 1'000);
    EXPECT_EQ(shown, one.shown) << one.what;
    EXPECT_EQ(CleanText(shown, 1'000), shown) << one.what;
  }
}

TEST(CleanText, CutsBetweenCharacters) {
  EXPECT_EQ(CleanText("日本語", 6), "日本");
  EXPECT_EQ(CleanText("日本語", 5), "日");
  EXPECT_EQ(CleanText("abc", 2), "ab");
  EXPECT_EQ(CleanText("abc", 0), "");
  EXPECT_EQ(CleanText("a\u202e", 7), "a\\u202e");
  EXPECT_EQ(CleanText("a\u202e", 6), "a");
}

}  // namespace
}  // namespace neurontrace
