// SPDX-License-Identifier: Apache-2.0
// Goal: a file of TOML is read with the place of each value, or what is wrong is said with its line
// and column; a file in the INI form is shown as TOML.
#include "lib/base/toml_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string ErrorOf(const std::string& text, TomlSections sections = TomlSections::kAreNames) {
  const auto root = ParseToml(text, "f", sections);
  EXPECT_FALSE(root.ok()) << text;
  return std::string(root.status().message());
}

TEST(TomlFileTest, ValuesHaveTheirPlacesAndTheOrderOfTheFile) {
  const auto root = ParseToml(
      "z = \"a # b\"  # comment\n"
      "[b]\n"
      "  n = -3\n"
      "[a.c]\n"
      "list = [1.5, true]\n",
      "f");
  ASSERT_TRUE(root.ok()) << root.status();
  ASSERT_EQ(root->children.size(), 3u);
  const TomlNode& text = root->children[0];
  EXPECT_EQ(text.key, "z");
  EXPECT_EQ(text.kind, TomlKind::kString);
  EXPECT_EQ(text.text, "a # b");
  const TomlNode& number = root->children[1].children[0];
  EXPECT_EQ(number.text, "-3");
  EXPECT_EQ(number.line, 3u);
  EXPECT_EQ(number.column, 3u);
  const TomlNode& list = root->children[2].children[0].children[0];
  EXPECT_EQ(list.kind, TomlKind::kArray);
  EXPECT_EQ(list.children[0].text, "1.5");
  EXPECT_EQ(list.children[1].text, "true");
  EXPECT_EQ(list.children[1].column, 14u);
}

TEST(TomlFileTest, RoundTripsWrittenToml) {
  const std::string text = R"({"a b" = "q\"\\\u0001é", "n" = [1, 2.5], "t" = {"x" = true}})";
  const auto root = ParseToml("rule = " + text, "f");
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(WriteToml(root->children[0]), text);
}

TEST(TomlFileTest, ErrorsNameLineAndColumn) {
  EXPECT_THAT(ErrorOf("a = 1\na = 2\n"), StartsWith("f:2:"));
  EXPECT_THAT(ErrorOf("a = \"open\n"), StartsWith("f:1:"));
  EXPECT_THAT(ErrorOf("a = \"\xff\"\n"), StartsWith("f:1:"));
  EXPECT_THAT(ErrorOf("[a]\n[a]\n"), StartsWith("f:2:"));
}

// toml++ asserts some of what it reports; see toml_file.cc.
TEST(TomlFileTest, KeysWithoutANameAreErrors) {
  for (const char* const text :
       {"[.]",    "[",       "[]",       "[[.]]", "[a.]",   "[.a]",    ".=1",   "a.=1", ".",
        "=",      "a={.=1}", "a={b.=1}", "a=[.]", "a=.",    "a=+",     "a=-",   "a=0x", "a=_",
        "a=1__0", "a=1979-", "\"",       "'",     "a=\"\\", "a=\"\\u", "a=inf_"}) {
    EXPECT_THAT(ErrorOf(text), StartsWith("f:1:"));
  }
}

// toml++ has no answer for some of these letters; see toml_file.cc.
TEST(TomlFileTest, LettersOutsideStringsAreErrors) {
  for (const std::string letter :
       {"\u00e9", "\u0182", "\u0498", "\u1500", "\u3042", "\ufd30", "\U0001f600"}) {
    for (const std::string& text : {letter + " = 1", "a = " + letter, "a " + letter + " = 1",
                                    "{\"a\"" + letter, "[a" + letter + "]", "a = 1 " + letter}) {
      EXPECT_THAT(ErrorOf(text), StartsWith("f:1:"));
    }
    EXPECT_TRUE(ParseToml("a = \"" + letter + "\"  # " + letter, "f").ok());
  }
}

TEST(TomlFileTest, TheIniFormIsShownAsToml) {
  EXPECT_THAT(ErrorOf("# x\nname = 127.0.0.1:9500 ; here\n"),
              HasSubstr("strings must be quoted: name = \"127.0.0.1:9500\""));
  EXPECT_THAT(ErrorOf("[agents]\n"
                      "role = agent\n"
                      "[alice b]\n"
                      "; of the team\n"
                      "certificate = cn:alice, dns:a ; x\n"
                      "job-uids = 1, 2\n"
                      "token-sha256 = secret\n"
                      "[next]\n"),
              AllOf(StartsWith("f:2:"), HasSubstr("write\n[agents]\nrole = \"agent\""),
                    Not(HasSubstr("alice"))));
  EXPECT_THAT(ErrorOf("[alice b]\n"
                      "; of the team\n"
                      "certificate = cn:alice, dns:a ; x\n"
                      "job-uids = 1, 2\n"
                      "token-sha256 = secret\n"
                      "[next]\n"),
              HasSubstr("\n"
                        "[\"alice b\"]\n"
                        "# of the team\n"
                        "certificate = [\"cn:alice\", \"dns:a\"]\n"
                        "job-uids = [1, 2]\n"
                        "token-sha256 = \"...\""));
  EXPECT_THAT(ErrorOf("[capture start]\nkeep = true\n", TomlSections::kNest),
              HasSubstr("\n[capture.start]\nkeep = true"));
  EXPECT_THAT(ErrorOf("a = [b\n"), Not(HasSubstr("must be quoted")));
}

TEST(TomlFileTest, LinesAndDepthHaveLimits) {
  EXPECT_THAT(ErrorOf("a = 1\n#" + std::string(kTomlLineBytesMax, 'x')),
              HasSubstr("f:2:1: the line is longer than 4096 bytes"));
  EXPECT_TRUE(ParseToml("a.b.c.d.e.f = 1\n", "f").ok());
  EXPECT_THAT(ErrorOf("a.b.c.d.e.f.g.h.i.j = 1\n"), HasSubstr("nested more than"));
  EXPECT_THAT(ErrorOf("a = [[[[[[[[[[1]]]]]]]]]]\n"), HasSubstr("nested more than"));
  EXPECT_THAT(ErrorOf("a = " + std::string(1000, '[')), StartsWith("f:1:"));
  std::string deep = "a";
  for (int i = 0; i < 1000; ++i) deep += ".a";
  EXPECT_THAT(ErrorOf(deep + " = 1\n"), HasSubstr("dots"));
}

// As deep as the limits of lines and of toml++ let it be: it fits onto the stack.
TEST(TomlFileTest, TheDeepestFileIsRefused) {
  std::string key = "a";
  for (int i = 0; i < 500; ++i) key += ".a";
  std::string text = "[" + key + "]\n" + key + " = [\n";
  for (int i = 0; i < 5; ++i) text += "{" + key + " = [\n";
  EXPECT_FALSE(ParseToml(text, "f").ok());
  text += "1";
  for (int i = 0; i < 5; ++i) text += "]}\n";
  EXPECT_THAT(ErrorOf(text + "]\n"), HasSubstr("nested more than"));
}

TEST(TomlFileTest, SectionsHandValuesToTheirKeys) {
  std::string name;
  std::vector<std::string> all;
  const auto problems_of = [&](const std::string& text) {
    TomlProblems problems("f");
    const auto root = ParseToml("[s]\n" + text, "f");
    EXPECT_TRUE(root.ok()) << root.status();
    const auto take = [&all](const TomlNode& value) {
      all.push_back(value.text);
      return std::string(value.text == "bad" ? "is not good" : "");
    };
    const bool is_good = ParseTomlSection(root->children[0],
                                          {{"name", ParseTomlString(name)},
                                           {.name = "all", .take = take, .is_list = true},
                                           {.name = "token", .take = take, .is_secret = true}},
                                          problems);
    EXPECT_EQ(is_good, problems.status().ok());
    return std::string(problems.status().message());
  };
  EXPECT_EQ(problems_of("name = \"n\"\nall = [\"a\", 2]\n"), "");
  EXPECT_EQ(name, "n");
  EXPECT_THAT(all, testing::ElementsAre("a", "2"));
  EXPECT_EQ(problems_of("name = 7\n"), "f:2:1: [s]: name = 7: name must be a quoted string");
  EXPECT_EQ(problems_of("all = [1,\n  \"bad\"]\n"), "f:3:3: [s]: all = \"bad\": all is not good");
  EXPECT_EQ(problems_of("token = \"bad\"\n"), "f:2:1: [s]: token is not good");
  EXPECT_EQ(problems_of("nmae = 1\n"),
            "f:2:1: [s]: unknown key 'nmae'; the keys are name, all, token");
  EXPECT_EQ(problems_of("name = [\"a\"]\n"), "f:2:1: [s]: name must be a single value");
  EXPECT_EQ(problems_of("name = \"\"\nall = []\n"),
            "f:2:1: [s]: name has no value; set one or remove the key\n"
            "f:3:1: [s]: all has no value; set one or remove the key");
  EXPECT_EQ(problems_of("[s.t]\nx = 1\n"),
            "f:2:4: [s]: unknown key 't'; the keys are name, all, token");
}

TEST(TomlFileTest, ReportsProblemsInTheOrderOfTheFileUpToALimit) {
  TomlProblems problems("f");
  for (uint32_t i = 0; i < 2 * kTomlProblemsMax; ++i) {
    problems.Add({.line = i == 0 ? 99 : i, .column = 1}, "", "x");
  }
  const std::string words(problems.status().message());
  EXPECT_EQ(std::count(words.begin(), words.end(), '\n'),
            static_cast<std::ptrdiff_t>(kTomlProblemsMax));
  EXPECT_THAT(words,
              AllOf(StartsWith("f:1:1: x\n"), HasSubstr("\nf:99:1: x\nf: 32 more problems")));
}

}  // namespace
}  // namespace neurontrace
