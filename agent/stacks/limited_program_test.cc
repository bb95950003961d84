// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/limited_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kLongNs = 600'000'000'000;  // longer than any machine's pause

std::vector<std::string> Shell(const std::string& script) { return {"/bin/sh", "-c", script}; }

TEST(LimitedProgram, ReturnsCodeAndOutput) {
  const auto result = RunLimited(Shell("echo out; echo err >&2; exit 3"), {kLongNs, 100, 100});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->end, ProgramResult::End::kExited);
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(result->out, "out\n");
  EXPECT_EQ(result->err, "err\n");
}

TEST(LimitedProgram, KillsWhatTakesTooLong) {
  const auto result = RunLimited(Shell("echo begun; sleep 1000 & wait"), {50'000'000, 100, 100});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->end, ProgramResult::End::kTimedOut);
}

// It closes its output and continues: the time still applies.
TEST(LimitedProgram, KillsWhatStaysAfterItsOutput) {
  const auto result = RunLimited(Shell("exec >/dev/null 2>&1; sleep 1000"), {50'000'000, 100, 100});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->end, ProgramResult::End::kTimedOut);
}

TEST(LimitedProgram, KillsWhatPrintsTooMuch) {
  const auto result = RunLimited(Shell("while :; do echo 0123456789; done"), {kLongNs, 1'000, 100});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->end, ProgramResult::End::kTooLarge);
  EXPECT_EQ(result->out.size(), 1'000u);
}

TEST(LimitedProgram, DiscardsFurtherErrors) {
  const auto result = RunLimited(
      Shell("i=0; while [ $i -lt 20000 ]; do echo 0123456789 >&2; i=$((i+1)); done; echo done"),
      {kLongNs, 100, 10});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->end, ProgramResult::End::kExited);
  EXPECT_EQ(result->out, "done\n");
  EXPECT_EQ(result->err, "0123456789");
}

TEST(LimitedProgram, EndsWhenCancelled) {
  const std::atomic<bool> cancelled = true;
  const auto result = RunLimited(Shell("sleep 1000"), {kLongNs, 100, 100, &cancelled});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->end, ProgramResult::End::kTimedOut);
}

// Neither secrets in variables nor open files of the agent reach the program.
TEST(LimitedProgram, HasNothingOfTheAgents) {
  ASSERT_EQ(setenv("NEURONTRACE_TEST_SECRET", "secret", 1), 0);
  int leaked[2];
  ASSERT_EQ(pipe(leaked), 0);
  const auto result = RunLimited(
      Shell("env; cat; for f in /proc/self/fd/*; do echo fd ${f##*/}; done"), {kLongNs, 9'999, 99});
  close(leaked[0]);
  close(leaked[1]);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 0);
  EXPECT_THAT(result->out, ::testing::Not(HasSubstr("secret")));
  EXPECT_THAT(result->out, ::testing::Not(HasSubstr("fd " + std::to_string(leaked[1]) + "\n")));
}

TEST(LimitedProgram, ReportsAMissingProgram) {
  const auto result = RunLimited({"/nowhere/py-spy"}, {kLongNs, 100, 100});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("/nowhere/py-spy"));
}

}  // namespace
}  // namespace neurontrace
