// SPDX-License-Identifier: Apache-2.0
// The goal: a rule file says what it means or what is wrong with it, with line, rule and the way
// out. Texts go in, rules or words come out.
#include "lib/triggers/trigger_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <utility>

#include "lib/base/time_units.h"
#include "lib/trace/trigger_limits.h"
#include "lib/triggers/trigger_rule_check.h"
#include "lib/triggers/verdict_patterns.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<TriggerRule> RulesOf(const std::string& text) {
  const auto rules = ParseTriggerFile(text, "f");
  EXPECT_TRUE(rules.ok()) << rules.status();
  return rules.ok() ? *rules : std::vector<TriggerRule>();
}

std::string ProblemOf(const std::string& text) {
  const auto rules = ParseTriggerFile(text, "f");
  EXPECT_FALSE(rules.ok()) << text;
  return std::string(rules.status().message());
}

TEST(TriggerFile, HasARuleOfEachKind) {
  const std::vector<TriggerRule> rules = RulesOf(R"(# what we look for
[slow]
when = "slow-execution"
times-median = 2.5      # of its core
job = "llama 3"
cool-down = "1.5h"
per-hour = 2
record-last = "30s"
record-for = 0

[silent]
when = "silent-core"
silent-for = "500ms"

[died]
when = "worker-died"

["alert.1"]
when = "post"
)");
  ASSERT_EQ(rules.size(), 4u);
  const TriggerRule& slow = rules[0];
  EXPECT_EQ(slow.name, "slow");
  EXPECT_EQ(slow.kind, TriggerKind::kSlowExecution);
  EXPECT_EQ(slow.times_median, 2.5);
  EXPECT_EQ(slow.job, "llama 3");
  EXPECT_EQ(slow.cool_down_ns, 5'400 * kNsPerSecond);
  EXPECT_EQ(slow.per_hour_max, 2u);
  EXPECT_EQ(slow.last_ns, 30 * kNsPerSecond);
  EXPECT_EQ(slow.duration_ns, 0u);
  EXPECT_EQ(rules[1].silent_ns, kNsPerSecond / 2);
  const TriggerRule& post = rules[3];
  EXPECT_EQ(post.name, "alert.1");
  EXPECT_EQ(post.kind, TriggerKind::kPost);
  EXPECT_EQ(post.cool_down_ns, 600 * kNsPerSecond);
  EXPECT_EQ(post.per_hour_max, 4u);
  EXPECT_EQ(post.last_ns, 20 * kNsPerSecond);
  EXPECT_EQ(post.duration_ns, 10 * kNsPerSecond);
}

TEST(TriggerFile, CanBeEmpty) {
  for (const char* const text : {"", "\n\n", "# nothing yet\n", "\xEF\xBB\xBF# by an editor\r\n"}) {
    EXPECT_TRUE(RulesOf(text).empty()) << text;
  }
}

TEST(TriggerFile, ReportsErrorLineAndRemedy) {
  const std::string post = "[a]\nwhen = \"post\"\n";
  const std::string slow = "[a]\nwhen = \"slow-execution\"\n";
  const std::string silent = "[a]\nwhen = \"silent-core\"\n";
  const std::pair<std::string, std::string> kCases[] = {
      {"when = \"post\"\n", "f:1:1: is outside of a rule; a rule starts with [NAME]"},
      {post + "cooldown = \"3s\"\n",
       "f:3:1: [a]: unknown key 'cooldown'; the keys are when, job, times-median"},
      {"[a]\nwhen = \"slow\"\n",
       "f:2:1: [a]: when = \"slow\": when must be one of slow-execution, silent-core"},
      {"[a]\njob = \"j\"\n", "f:1:2: [a]: the rule has no condition; add `when = "},
      {post + "\n" + post, "f:4:"},
      {post + "when = \"worker-died\"\n", "f:3:"},
      {"[\"a b\"]\nwhen = \"post\"\n",
       "f:1:2: [a b]: a rule's name must have 1 to 64 letters, digits"},
      {"[a.b]\nwhen = \"post\"\n", "f:1:4: [a]: unknown key 'b'"},
      {"[a\nwhen = \"post\"\n", "f:1:"},
      {"[a]\nwhen = post\nsilent-for = 3s ; x\n", "\n[a]\nwhen = \"post\"\nsilent-for = \"3s\""},
      {slow, "f:1:2: [a]: times-median is missing; it must be a number from 1.1 to 1000"},
      {slow + "times-median = 1\n", "f:3:1: [a]: times-median must be a number from 1.1 to 1000"},
      {slow + "times-median = \"3\"\n", "times-median must be a number, such as 3"},
      {slow + "times-median = -2\n", "times-median must be a number, such as 3"},
      {post + "times-median = 2\n",
       "f:3:1: [a]: times-median applies to `when = \"slow-execution\"`, but this rule has `when = "
       "\"post\"`"},
      {silent + "silent-for = 30\n",
       "f:3:1: [a]: silent-for = 30: silent-for must be a number and a unit: \"500ms\""},
      {silent + "silent-for = \"499ms\"\n", "silent-for must be a duration from 500ms to 1d"},
      {silent + "silent-for = \"1.0001s\"\n", "a whole number of milliseconds"},
      {silent + "silent-for = \"999999999d\"\n", "silent-for must be a duration from 500ms"},
      {"[a]\nwhen = \"event\"\n",
       "write `when = \"post\"`, and let the program that detects the event run `curl"},
      {"[a]\nwhen = \"file\"\n", "http://127.0.0.1:9402/triggers/a"},
      {post + "cool-down = 0\n", "cool-down must be a duration from 1s to 7d"},
      {post + "per-hour = 61\n", "per-hour must be a number from 1 to 60"},
      {post + "per-hour = 1.5\n", "per-hour must be a whole number"},
      {post + "record-last = \"2h\"\n", "record-last must be a duration from 100ms to 1h"},
      {post + "record-last = 0\nrecord-for = 0\n", "the rule records nothing"},
      {post + "job = \"x\n", "f:3:"},
      {post + "job = 7\n", "job must be a quoted string"},
      {post + "job = \"\"\n", "job has no value; set one or remove the key"},
      {post + "job = \"a\\u0001 b\"\n", "has unprintable characters"},
  };
  for (const auto& [text, words] : kCases) EXPECT_THAT(ProblemOf(text), HasSubstr(words));
}

TEST(TriggerFile, NamesKindsOfVerdicts) {
  const std::string rule = "[a]\nwhen = \"verdict\"\n";
  const TriggerRule read = RulesOf(rule + "verdict = \"slow-host, hang-*\"\n")[0];
  EXPECT_EQ(read.kind, TriggerKind::kVerdict);
  EXPECT_EQ(read.peers, 8u);
  for (const char* const kind : {"slow-host", "hang-inside", "hang-not-entered"}) {
    EXPECT_TRUE(MatchesVerdict(read.verdicts, kind)) << kind;
  }
  for (const char* const kind : {"slow-core", "dead-worker", "hang", ""}) {
    EXPECT_FALSE(MatchesVerdict(read.verdicts, kind)) << kind;
  }
  EXPECT_EQ(RulesOf(rule + "verdict = \"*\"\npeers = 0\n")[0].peers, 0u);
  EXPECT_THAT(ProblemOf(rule), HasSubstr("verdict is missing"));
  EXPECT_THAT(ProblemOf(rule + "verdict = \"slow-hots\"\n"),
              HasSubstr("'slow-hots', which matches no kind of verdict"));
  EXPECT_THAT(ProblemOf(rule + "verdict = \"slow-host,\"\n"), HasSubstr("matches no kind"));
  EXPECT_THAT(ProblemOf(rule + "verdict = \"*\"\npeers = 65\n"), HasSubstr("from 0 to 64"));
  EXPECT_FALSE(RulesOf(rule + "verdict = \"*\"\n")[0].stacks);
  EXPECT_TRUE(RulesOf(rule + "verdict = \"*\"\nstacks = true\n")[0].stacks);
  EXPECT_THAT(ProblemOf(rule + "verdict = \"*\"\nstacks = \"yes\"\n"), HasSubstr("true or false"));
  EXPECT_THAT(ProblemOf("[a]\nwhen = \"post\"\nstacks = true\n"),
              HasSubstr("applies to slow-execution"));
  EXPECT_THAT(ProblemOf("[a]\nwhen = \"post\"\nverdict = \"*\"\n"), HasSubstr("applies to"));
}

TEST(TriggerFile, ReportsAllProblems) {
  const std::string words =
      ProblemOf("x = 1\n[a]\nwhen = \"never\"\nnonsense = 1\n[b]\nwhen = \"post\"\nper-hour = 0\n");
  EXPECT_EQ(std::count(words.begin(), words.end(), '\n'), 3);
}

TEST(TriggerFile, HasALimitOnEverything) {
  std::string rules;
  for (uint32_t i = 0; i < limits::kTriggerRulesMax; ++i) {
    rules += "[r" + std::to_string(i) + "]\nwhen = \"post\"\n";
  }
  EXPECT_EQ(RulesOf(rules).size(), size_t{limits::kTriggerRulesMax});
  EXPECT_THAT(ProblemOf(rules + "[one-more]\nwhen = \"post\"\n"), HasSubstr("more than 256 rules"));
  const std::string job = "[a]\nwhen = \"post\"\njob = \"" + std::string(600, 'x') + "\"\n";
  EXPECT_THAT(ProblemOf(job), HasSubstr("job is longer than 512 bytes"));
  EXPECT_THAT(ProblemOf(std::string(limits::kTriggerFileBytesMax + 1, '#')),
              HasSubstr("the file is larger than 262144 bytes"));
}

TEST(TriggerRule, IsValidatedByEveryReceiver) {
  TriggerRule rule{.name = "x",
                   .kind = TriggerKind::kPost,
                   .cool_down_ns = kNsPerSecond,
                   .per_hour_max = 1,
                   .last_ns = kNsPerSecond};
  EXPECT_TRUE(CheckTriggerRule(rule).ok());
  rule.silent_ns = kNsPerSecond;
  EXPECT_THAT(std::string(CheckTriggerRule(rule).message()),
              HasSubstr("rule 'x': silent-for applies to"));
  rule = {.name = "x", .kind = static_cast<TriggerKind>(77)};
  EXPECT_EQ(CheckTriggerRule(rule).code(), absl::StatusCode::kInvalidArgument);
}

TEST(ReadTriggerFile, AnEmptyFileIsNoFileWithoutRules) {
  const std::string path = testing::TempDir() + "/empty_triggers.toml";
  for (const char* const text : {"", " \n\r\n"}) {
    std::ofstream(path) << text;
    EXPECT_THAT(std::string(ReadTriggerFile(path).status().message()), HasSubstr("is empty"));
  }
  std::ofstream(path) << "# none\n";
  EXPECT_EQ(ReadTriggerFile(path)->size(), 0u);
}

TEST(ReadTriggerFile, ReportsUnreadableFile) {
  const std::string path = testing::TempDir() + "/neurontrace-triggers-test";
  std::remove(path.c_str());
  EXPECT_EQ(ReadTriggerFile(path).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadTriggerFile(testing::TempDir()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  std::ofstream(path) << "[a]\nwhen = \"post\"\n";
  EXPECT_EQ(ReadTriggerFile(path)->size(), 1u);
  std::ofstream(path) << "[a]\nwhen = \"pots\"\n";
  EXPECT_THAT(std::string(ReadTriggerFile(path).status().message()),
              HasSubstr(path + ":2:1: [a]: when = \"pots\""));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace neurontrace
