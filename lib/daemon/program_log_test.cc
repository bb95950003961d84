// SPDX-License-Identifier: Apache-2.0
// What this process writes to stderr.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/details/log_msg.h>
#include <spdlog/formatter.h>
#include <spdlog/spdlog.h>

#include <chrono>

#include "lib/base/time_units.h"
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

TEST_F(ProgramLogTest, WritesTextUnlessToldOtherwise) {
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

TEST_F(ProgramLogTest, AFloodIsCountedAndToldOnce) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < 100; ++i) spdlog::error("lost {}", i);
  spdlog::error("something else");
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_THAT(written, HasSubstr("lost 9\n"));
  EXPECT_THAT(written, Not(HasSubstr("lost 10\n")));
  EXPECT_THAT(written, HasSubstr("something else\n"));
  EXPECT_EQ(log_.left_out(), 100u - limits::kLogLinesOfKindAtOnce);
}

TEST_F(ProgramLogTest, WhoAsksForDebugLinesGetsAll) {
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

// The goal: a flood of one kind of line leaves room for the others, and is reported as one number.

constexpr uint64_t kStart = 5 * kNsPerSecond;

class LineLimiterTest : public testing::Test {
 protected:
  // How many of `count` lines at one moment pass; `{}` in the text becomes a number.
  int Pass(const std::string& text, int count, uint64_t at_ns) {
    int passed = 0;
    for (int i = 0; i < count; ++i) {
      passed += limiter_->Judge(text + " " + std::to_string(i), at_ns).passes ? 1 : 0;
    }
    return passed;
  }

  const std::unique_ptr<LineLimiter> limiter_ = std::make_unique<LineLimiter>();
};

TEST_F(LineLimiterTest, OneKindGetsItsShareAndThenOneASecond) {
  EXPECT_EQ(Pass("connection lost", 1'000, kStart), int{limits::kLogLinesOfKindAtOnce});
  EXPECT_EQ(limiter_->left_out(), 1'000 - limits::kLogLinesOfKindAtOnce);
  EXPECT_EQ(Pass("connection lost", 5, kStart + kNsPerSecond - 1), 0);
  const auto next = limiter_->Judge("connection lost 7", kStart + kNsPerSecond);
  EXPECT_TRUE(next.passes);
  EXPECT_EQ(next.left_out, 1'000 - limits::kLogLinesOfKindAtOnce + 5);
  EXPECT_FALSE(limiter_->Judge("connection lost 8", kStart + kNsPerSecond).passes);
}

TEST_F(LineLimiterTest, OtherKindsAreNotHeldBack) {
  Pass("connection lost", 1'000, kStart);
  EXPECT_EQ(Pass("disk full", 1, kStart), 1);
  EXPECT_EQ(limiter_->Judge("store opened", kStart).left_out, 0u);
}

TEST_F(LineLimiterTest, AQuietWhileGivesTheShareBack) {
  Pass("connection lost", 1'000, kStart);
  EXPECT_EQ(Pass("connection lost", 1'000, kStart + 3'600 * kNsPerSecond),
            int{limits::kLogLinesOfKindAtOnce});
}

TEST_F(LineLimiterTest, ManyKindsTogetherAreBoundedToo) {
  uint32_t passed = 0;
  for (int i = 0; i < 5'000; ++i) {
    std::string text = "kind ";
    for (int rest = i; rest > 0; rest /= 26) text += static_cast<char>('a' + rest % 26);
    passed += limiter_->Judge(text, kStart).passes ? 1 : 0;
  }
  EXPECT_EQ(passed, limits::kLogLinesAtOnce);
  EXPECT_EQ(Pass("later", 1, kStart + kNsPerSecond), 1);
}

}  // namespace
}  // namespace neurontrace
