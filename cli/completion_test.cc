// SPDX-License-Identifier: Apache-2.0
#include "cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/help_formatter.h"

namespace neurontrace::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CompletionTest : public testing::Test {
 protected:
  CompletionTest() {
    app_.add_option("--output", text_, "How")->check(CLI::IsMember({"table", "json"}));
    app_.add_flag("--quiet", quiet_, "No words");
    CLI::App* const captures = app_.add_subcommand("captures", "List");
    captures->add_subcommand("show", "One")->add_option("ID", text_);
    CLI::App* const capture = app_.add_subcommand("capture", "Record");
    capture->add_option("-o,--out", text_, "File");
    capture->add_option("--instance", texts_, "Where");
    app_.add_subcommand("check", "Rules")->add_option("FILE", text_);
    CLI::App* const record = app_.add_subcommand("record", "Run");
    record->add_option("COMMAND", texts_, "What");
    record->add_option("--programs", text_, "Where");
  }
  Completions At(const std::vector<std::string>& words) { return Complete(app_, words); }
  std::vector<std::string> TextsAt(const std::vector<std::string>& words) {
    std::vector<std::string> texts;
    for (const Candidate& candidate : At(words).candidates) texts.push_back(candidate.text);
    return texts;
  }
  CLI::App app_;
  bool quiet_ = false;
  std::string text_;
  std::vector<std::string> texts_;
};

TEST_F(CompletionTest, CommandsAndTheirCommands) {
  EXPECT_THAT(TextsAt({"cap"}), ElementsAre("captures", "capture"));
  EXPECT_THAT(TextsAt({"--quiet", "rec"}), ElementsAre("record"));
  EXPECT_THAT(TextsAt({"captures", ""}), ElementsAre("show"));
  EXPECT_THAT(TextsAt({"nothing", "x"}), IsEmpty());
  EXPECT_EQ(At({"rec"}).candidates[0].description, "Run");
}

TEST_F(CompletionTest, OptionsOfTheCommandAndOfAllCommands) {
  EXPECT_THAT(TextsAt({"capture", "--o"}), ElementsAre("--out", "--output"));
  EXPECT_THAT(TextsAt({"captures", "--o"}), ElementsAre("--output"));
}

TEST_F(CompletionTest, ValuesOfAnOption) {
  EXPECT_THAT(TextsAt({"--output", ""}), ElementsAre("table", "json"));
  EXPECT_THAT(TextsAt({"--output", "=", "j"}), ElementsAre("json"));
  EXPECT_THAT(TextsAt({"--output", "="}), ElementsAre("table", "json"));
  EXPECT_THAT(TextsAt({"captures", "--output=j"}), ElementsAre("--output=json"));
  EXPECT_THAT(TextsAt({"--output", "json", "cap"}), ElementsAre("captures", "capture"));
}

TEST_F(CompletionTest, FilesDirectoriesAndCommands) {
  EXPECT_EQ(At({"capture", "-o", "x"}).kind, CompletionKind::kFiles);
  EXPECT_EQ(At({"check", ""}).kind, CompletionKind::kFiles);
  EXPECT_EQ(At({"check", "--"}).kind, CompletionKind::kNothing);
  EXPECT_EQ(At({"record", "--programs", ""}).kind, CompletionKind::kDirectories);
  EXPECT_EQ(At({"record", "--", "py"}).kind, CompletionKind::kCommands);
  EXPECT_EQ(At({"record", "--", "python", "--out"}).kind, CompletionKind::kCommands);
  EXPECT_EQ(At({"capture", "--", "py"}).kind, CompletionKind::kNothing);
  EXPECT_EQ(At({}).kind, CompletionKind::kNothing);
}

TEST(HelpLine, BreaksAtTheWidthOfATerminal) {
  EXPECT_EQ(HelpLine("--name", "words"), "  --name                      words\n");
  const std::string text(60, 'x');
  EXPECT_EQ(HelpLine("--name", text + " " + text),
            "  --name                      " + text + "\n" + std::string(30, ' ') + text + "\n");
  EXPECT_EQ(HelpLine("--a-name-that-is-rather-long", "words"),
            "  --a-name-that-is-rather-long\n" + std::string(30, ' ') + "words\n");
  EXPECT_EQ(HelpLine("--name", ""), "  --name\n");
}

TEST(BrokenLines, KeepIndentationAndShortLines) {
  EXPECT_EQ(BrokenLines("Examples:\n  a\n\nb"), "Examples:\n  a\n\nb");
  const std::string half(50, 'x');
  EXPECT_EQ(BrokenLines("  " + half + " " + half + "\nend\n"),
            "  " + half + "\n  " + half + "\nend\n");
  EXPECT_EQ(BrokenLines(half + half), half + half);
}

}  // namespace
}  // namespace neurontrace::cli
