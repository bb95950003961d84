// SPDX-License-Identifier: Apache-2.0
// What people read: tables, numbers, durations, bars.
#include "cli/text.h"

#include <gtest/gtest.h>

#include "cli/progress_line.h"

namespace neurontrace::cli {
namespace {

TEST(FormatTable, AlignsNumbersRightAndTextLeftAndTrimsLines) {
  EXPECT_EQ(FormatTable({"NAME", "EVENTS"}, {{"a", "1"}, {"müller", "1,000"}}),
            "NAME    EVENTS\n"
            "a            1\n"
            "müller   1,000\n");
  EXPECT_EQ(FormatTable({"A", "B"}, {{"x", "-"}, {"y", "word"}}), "A  B\nx  -\ny  word\n");
}

TEST(FormatTable, FitsATerminalByCuttingItsWidestCells) {
  const std::vector<std::vector<std::string>> rows = {
      {"i-0f207fb2a99bd2d08", "guess: local rank 3 of RANK, assuming what nobody said", "llama"}};
  EXPECT_EQ(FormatTable({"INSTANCE", "EVIDENCE", "JOB"}, rows, 60),
            "INSTANCE             EVIDENCE                          JOB\n"
            "i-0f207fb2a99bd2d08  guess: local rank 3 of RANK, as…  llama\n");
  // What is narrow is not made unreadable: the line ends instead.
  EXPECT_EQ(FormatTable({"INSTANCE", "EVIDENCE", "JOB"}, rows, 30),
            "INSTANCE             EVIDENCE…\n"
            "i-0f207fb2a99bd2d08  guess: l…\n");
}

TEST(FormatNumbers, ReadLikePeopleWriteThem) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatDuration(0), "-");
  EXPECT_EQ(FormatDuration(1'500'000'000), "1.5 s");
  EXPECT_EQ(FormatDuration(20'000'000), "20 ms");
  EXPECT_EQ(FormatDuration(999'949), "999.9 us");
  EXPECT_EQ(FormatDuration(999'950), "1 ms");
  EXPECT_EQ(FormatDuration(999'500'000), "1.0 s");
  EXPECT_EQ(FormatCounted(1, "worker"), "1 worker");
  EXPECT_EQ(FormatCounted(1024, "process", "processes"), "1,024 processes");
  EXPECT_EQ(FormatDuration(3 * 3600 * 1'000'000'000ull), "3 h 0 min");
  EXPECT_EQ(FormatTime(1'700'000'000'000'000'000), "2023-11-14 22:13:20Z");
}

TEST(ParseDuration, UnderstandsUnits) {
  EXPECT_EQ(*ParseDuration("30s"), 30'000'000'000u);
  EXPECT_EQ(*ParseDuration("500ms"), 500'000'000u);
  EXPECT_EQ(*ParseDuration("1.5s"), 1'500'000'000u);
  EXPECT_EQ(*ParseDuration("2m"), 120'000'000'000u);
  EXPECT_EQ(*ParseDuration("0"), 0u);
}

TEST(ParseDuration, RejectsOthersAndListsUnits) {
  for (const char* text : {"1e3s", "", "s", "7", "0.5", "-1s", "5 parsecs", "nan", "1e30h"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
  EXPECT_EQ(ParseDuration("5x").status().message(),
            "'5x' is not a duration; write it with a unit, like 30s, 500ms, 2m or 1h");
}

TEST(SplitList, TakesCommasAndRepeats) {
  EXPECT_EQ(SplitList({"a, b", "", "c,,d"}), (std::vector<std::string>{"a", "b", "c", "d"}));
}

TEST(Bar, FillsAndClamps) {
  EXPECT_EQ(Bar(0.5, 4), "[##--]");
  EXPECT_EQ(Bar(7, 4), "[####]");
  EXPECT_EQ(Bar(-1, 4), "[----]");
}

}  // namespace
}  // namespace neurontrace::cli
