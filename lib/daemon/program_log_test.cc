// SPDX-License-Identifier: Apache-2.0
// What this process writes to stderr.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/details/log_msg.h>
#include <spdlog/formatter.h>
#include <spdlog/spdlog.h>

#include <chrono>

#include "lib/daemon/program_log.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

class ProgramLogTest : public testing::Test {
 protected:
  ~ProgramLogTest() override { spdlog::set_level(spdlog::level::info); }

  ProgramLog log_{"agent"};
};

TEST_F(ProgramLogTest, WritesTextByDefault) {
  testing::internal::CaptureStderr();
  spdlog::warn("disk {}", "full");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              MatchesRegex(R"(\[[-0-9]+ [:.0-9]+\] \[agent\] \[warning\] disk full.)"));
}

TEST_F(ProgramLogTest, NobodyQuotedBeginsALine) {
  testing::internal::CaptureStderr();
  spdlog::warn("it belongs to agent {}", "a\n[now] [agent] [info] forged \x1b[31m\xff");
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_THAT(written, EndsWith("agent a?[now] [agent] [info] forged ?[31m?\n"));
  EXPECT_THAT(log_.RecentWarnings(), ElementsAre(EndsWith("forged ?[31m?")));
}

TEST_F(ProgramLogTest, WritesAnObjectALine) {
  log_.SetFormat(LogFormat::kJson);
  testing::internal::CaptureStderr();
  SPDLOG_INFO("said \"yes\"\nand\x01 \xff");
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_THAT(line, HasSubstr(R"("level":"info","program":"agent","thread":)"));
  EXPECT_THAT(line, HasSubstr(R"("source":"program_log_test.cc:)"));
  EXPECT_THAT(line, EndsWith("\"message\":\"said \\\"yes\\\"?and? ?\"}\n"));
}

TEST_F(ProgramLogTest, AJsonTimeIsRfc3339) {
  using std::chrono::microseconds;
  const spdlog::log_clock::time_point time(microseconds{1'794'608'533'000'042});
  const spdlog::details::log_msg message(time, {}, "agent", spdlog::level::err, "words");
  spdlog::memory_buf_t out;
  MakeJsonFormatter()->format(message, out);
  EXPECT_THAT(std::string(out.data(), out.size()),
              HasSubstr(R"({"time":"2026-11-13T22:22:13.000042Z","level":"error",)"));
}

TEST_F(ProgramLogTest, CountsFloodAndReportsItOnce) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < 100; ++i) spdlog::error("lost {}", i);
  spdlog::error("something else");
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_THAT(written, HasSubstr("lost 9\n"));
  EXPECT_THAT(written, Not(HasSubstr("lost 10\n")));
  EXPECT_THAT(written, HasSubstr("something else\n"));
  EXPECT_EQ(log_.left_out(), 100u - limits::kLogLinesOfKindAtOnce);
}

TEST_F(ProgramLogTest, DebugLevelIsUnlimited) {
  log_.SetLevel("debug");
  testing::internal::CaptureStderr();
  for (int i = 0; i < 100; ++i) spdlog::debug("step {}", i);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("step 99\n"));
  EXPECT_EQ(log_.left_out(), 0u);
}

TEST_F(ProgramLogTest, KeepsTheNewestWarningsAsText) {
  log_.SetFormat(LogFormat::kJson);
  testing::internal::CaptureStderr();
  EXPECT_THAT(log_.RecentWarnings(), IsEmpty());
  spdlog::info("not kept");
  spdlog::warn("first");
  spdlog::error("second");
  testing::internal::GetCapturedStderr();
  EXPECT_THAT(log_.RecentWarnings(),
              ElementsAre(EndsWith("[agent] [warning] first"), EndsWith("[error] second")));
}

TEST_F(ProgramLogTest, CutsALineThatIsTooLong) {
  testing::internal::CaptureStderr();
  spdlog::info(std::string(10 * limits::kLogLineBytesMax, 'x'));
  EXPECT_LT(testing::internal::GetCapturedStderr().size(), limits::kLogLineBytesMax + 100);
}

}  // namespace
}  // namespace neurontrace
