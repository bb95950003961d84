// SPDX-License-Identifier: Apache-2.0
// Goal: a summary that fits a terminal whatever the names in it are, and that programs can read.
// Method: captures in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "aggregator/export/json/json_text.h"
#include "aggregator/export/summary/text_table.h"
#include "tests/export/export_fixture.h"

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SummaryTest : public ExportFixture {
 protected:
  void AddExecutions(uint32_t stream, uint64_t length_ns) {
    for (uint64_t i = 0; i < 10; ++i) {
      const uint64_t start = kBase + i * 1'000'000;
      script_.Span("nc_exec_running", start, start + length_ns, i + 1, 7,
                   {{"exec_id", i}, {"model_name", std::string("llama")}});
    }
    Close(stream);
  }
  static size_t LongestLine(const std::string& text) {
    size_t longest = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      longest = std::max(
          longest, static_cast<size_t>(std::count_if(line.begin(), line.end(),
                                                     [](char c) { return (c & 0xc0) != 0x80; })));
    }
    return longest;
  }
};

TEST_F(SummaryTest, TheCoreWithMostOwnWorkComesFirstAndTheVerdictLast) {
  AddExecutions(AddCore("i-a", 1, 0, 5), 900'000);
  AddExecutions(AddCore("i-b", 2, 0, 6), 450'000);
  Certificate certificate;
  certificate.verdict = "incomplete: 3 of 9 events lost";
  certificate.account = {.expected = 9, .captured = 6, .stored = 6, .lost = 3};
  const std::string text = Export("summary-text", {.certificate = &certificate});
  EXPECT_TRUE(text.ends_with("\nVerdict\n  incomplete: 3 of 9 events lost\n")) << text;
  const size_t table = text.find("Cores, most own work first");
  ASSERT_NE(table, std::string::npos) << text;
  const size_t less = text.find("gid6 i-b pid 2 nc 0", table);
  const size_t more = text.find("gid5 i-a pid 1 nc 0", table);
  ASSERT_NE(less, std::string::npos) << text;
  ASSERT_NE(more, std::string::npos) << text;
  EXPECT_LT(more, less);
  EXPECT_THAT(text, AllOf(HasSubstr("Slowest executions"), HasSubstr("llama"),
                          HasSubstr("3 trace events were dropped")));
}

TEST_F(SummaryTest, HostileNamesNeitherWidenNorSteerTheTerminal) {
  AddExecutions(AddCore(std::string(400, 'w') + "\x1b[2J", 1, 0, 5), 900'000);
  const uint32_t stream = AddCore("i-b", 1, 0, -1);
  Close(stream, std::string(300, 'x') + "\x1b[31m \xff \xc3\xa9");
  source_.stream(stream).losses = {{LossPlace::kRuntimeRing, LossReason::kOverwritten, 17, false,
                                    kBase, kBase, std::string(500, 'z') + " \n end"}};
  source_.description().warnings = {std::string(90, 'a') + " " + std::string(90, 'b') + " c d e"};
  const std::string text = Export("summary-text");
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  std::string without_text;  // a word that is longer than a line stands as it is
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("zzzz") == std::string::npos) without_text += line + "\n";
  }
  EXPECT_LE(LongestLine(without_text), TextTable::kWidthMax) << text;
}

TEST_F(SummaryTest, TheJsonIsJsonAndKeepsItsOlderKeys) {
  AddExecutions(AddCore("i-\"a\\", 1, 0, 5), 900'000);
  Certificate certificate;
  const std::string text = Export("summary-json", {.certificate = &certificate,
                                                   .certificate_json = R"({"verdict":"x"})",
                                                   .capture_json = R"({"capture_id":"y"})"});
  EXPECT_TRUE(IsJson(text)) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("{\"format_version\":1,\n\"producer\":\"neurontrace "),
                          HasSubstr(",\n\"capture\":{\"capture_id\":\"y\"},\n\"certificate\":"
                                    "{\"verdict\":\"x\"},\n\"summary\":{\"begin_ns\":\"175"),
                          HasSubstr("\"executions\":10,\"busy_ns\":9000000,\"own_ns\":9000000,"),
                          HasSubstr("\"event_type\":\"nc_exec_running\"")));
}

TEST_F(SummaryTest, EmptyCaptureHasSummary) {
  EXPECT_THAT(Export("summary-text"), HasSubstr("0 instances, 0 workers, 0 cores"));
  EXPECT_TRUE(IsJson(Export("summary-json")));
}

TEST(TextTableTest, FiguresHaveThreeDigits) {
  EXPECT_EQ(CountText(1'234'567), "1,234,567");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(DurationText(0), "0 ns");
  EXPECT_EQ(DurationText(999), "999 ns");
  EXPECT_EQ(DurationText(1'234), "1.23 us");
  EXPECT_EQ(DurationText(45'678'900), "45.7 ms");
  EXPECT_EQ(DurationText(999'600'000), "1.00 s");
  EXPECT_EQ(DurationText(7'200'000'000'000), "7200 s");
  EXPECT_EQ(BytesText(1.5e9), "1.50 GB");
  EXPECT_EQ(ShareText(0.8734), "87.3 %");
}

TEST(TextTableTest, CutsTheFirstColumnBetweenCharacters) {
  std::string name;
  for (int i = 0; i < 200; ++i) name += "\xc3\xa9";
  TextTable table({"name", "count"});
  table.Add({name, "1"});
  std::string out;
  table.AppendTo(out);
  EXPECT_THAT(out, HasSubstr("\xc3\xa9..  "));
  EXPECT_TRUE(IsJson("\"" + out.substr(0, out.find('\n')) + "\""));
}

}  // namespace
}  // namespace neurontrace
