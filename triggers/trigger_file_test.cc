// SPDX-License-Identifier: Apache-2.0
// The goal: a rule file says what it means or what is wrong with it, with line, rule and the way
// out. Texts go in, rules or words come out.
#include "triggers/trigger_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "base/time_units.h"
#include "trace/trigger_limits.h"
#include "triggers/trigger_rule_check.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The one problem that it has, "LINE: rule NAME: WORDS"; more are failures of the test.
std::string ProblemOf(const std::string& text) {
  const TriggerFile file = ParseTriggerFile(text);
  EXPECT_EQ(file.problems.size(), 1u) << DescribeProblems("f", file);
  return DescribeProblems("f", file);
}

TEST(TriggerFile, HasARuleOfEachKind) {
  const TriggerFile file = ParseTriggerFile(R"(# what we look for
[slow]
when = slow-execution
times-median = 2.5      ; of its core
job = "llama 3"
cool-down = 1.5h
per-hour = 2
record-last = 30s
record-for = 0

[silent]
when = silent-core
silent-for = 500ms

[died]
when = worker-died

[alert]
when = post
)");
  ASSERT_TRUE(file.problems.empty()) << DescribeProblems("f", file);
  ASSERT_EQ(file.rules.size(), 4u);
  const TriggerRule& slow = file.rules[0];
  EXPECT_EQ(slow.name, "slow");
  EXPECT_EQ(slow.kind, TriggerKind::kSlowExecution);
  EXPECT_EQ(slow.times_median, 2.5);
  EXPECT_EQ(slow.job, "llama 3");
  EXPECT_EQ(slow.cool_down_ns, 5'400 * kNsPerSecond);
  EXPECT_EQ(slow.per_hour_max, 2u);
  EXPECT_EQ(slow.last_ns, 30 * kNsPerSecond);
  EXPECT_EQ(slow.duration_ns, 0u);
  EXPECT_EQ(file.rules[1].silent_ns, kNsPerSecond / 2);
  const TriggerRule& post = file.rules[3];
  EXPECT_EQ(post.kind, TriggerKind::kPost);
  EXPECT_EQ(post.cool_down_ns, 600 * kNsPerSecond);
  EXPECT_EQ(post.per_hour_max, 4u);
  EXPECT_EQ(post.last_ns, 20 * kNsPerSecond);
  EXPECT_EQ(post.duration_ns, 10 * kNsPerSecond);
}

TEST(TriggerFile, MayBeEmpty) {
  for (const char* const text : {"", "\n\n", "# nothing yet\n", "\xEF\xBB\xBF; by an editor\r\n"}) {
    const TriggerFile file = ParseTriggerFile(text);
    EXPECT_TRUE(file.problems.empty()) << text;
    EXPECT_TRUE(file.rules.empty()) << text;
  }
}

TEST(TriggerFile, SaysWhatIsWrongWhereAndHowItIsPutRight) {
  const struct {
    const char* text;
    const char* words;
  } kCases[] = {
      {"when = post\n", "f:1: stands before the first rule: begin with [NAME]"},
      {"[a]\nwhen = post\ncooldown = 3s\n",
       "f:3: rule a: there is no key 'cooldown': the keys are when, job, times-median"},
      {"[a]\nwhen = slow\n",
       "f:2: rule a: when = slow: when is one of slow-execution, silent-core"},
      {"[a]\njob = j\n", "f:1: rule a: the rule does not say when it fires: add `when = `"},
      {"[a]\nwhen = post\n\n[a]\nwhen = post\n",
       "f:4: rule a: there is a rule of this name at line 1 already"},
      {"[a]\nwhen = post\nwhen = worker-died\n", "f:3: rule a: when stands at line 2 already"},
      {"[a b]\nwhen = post\n", "f:1: rule a b: a rule's name is 1 to 64 letters, digits"},
      {"[a\nwhen = post\n", "f:1: a rule begins with its name alone in brackets"},
      {"[a] x\nwhen = post\n", "f:1: a rule begins with its name alone in brackets"},
      {"[a]\nwhen = post\nfire\n", "f:3: rule a: 'fire' is no `key = value`"},
      {"[a]\nwhen = slow-execution\n",
       "f:1: rule a: there has to be times-median, which is a number from 1.1 to 1000"},
      {"[a]\nwhen = slow-execution\ntimes-median = 1\n",
       "f:3: rule a: times-median is a number from 1.1 to 1000"},
      {"[a]\nwhen = slow-execution\ntimes-median = 1e3\n", "times-median is a number, as 3"},
      {"[a]\nwhen = slow-execution\ntimes-median = -2\n", "times-median is a number, as 3"},
      {"[a]\nwhen = post\ntimes-median = 2\n",
       "f:3: rule a: times-median is for `when = slow-execution`, and this rule says `when = "
       "post`"},
      {"[a]\nwhen = silent-core\nsilent-for = 30\n",
       "f:3: rule a: silent-for = 30: silent-for is a number and a unit: 500ms"},
      {"[a]\nwhen = silent-core\nsilent-for = 499ms\n", "silent-for is a time from 500ms to 1d"},
      {"[a]\nwhen = silent-core\nsilent-for = 1.0001s\n", "a number of whole milliseconds"},
      {"[a]\nwhen = silent-core\nsilent-for = 999999999d\n", "silent-for is a time from 500ms"},
      {"[a]\nwhen = event\n", "write `when = post`, and let what sees the event run `curl"},
      {"[a]\nwhen = file\n", "http://127.0.0.1:9402/triggers/a"},
      {"[a]\nwhen = post\ncool-down = 0\n", "cool-down is a time from 1s to 7d"},
      {"[a]\nwhen = post\nper-hour = 61\n", "per-hour is a number from 1 to 60"},
      {"[a]\nwhen = post\nper-hour = 1.0\n", "per-hour is a whole number"},
      {"[a]\nwhen = post\nrecord-last = 2h\n", "record-last is a time from 100ms to 1h"},
      {"[a]\nwhen = post\nrecord-last = 0\nrecord-for = 0\n", "the rule would record nothing"},
      {"[a]\nwhen = post\njob = \"x\n", "job has a quote that is not closed"},
      {"[a]\nwhen = post\njob =\n", "job has no value: give one, or remove the line"},
      {"[a]\nwhen = post\njob = a\x01 b\n", "has characters that are not printable"},
  };
  for (const auto& one : kCases) EXPECT_THAT(ProblemOf(one.text), HasSubstr(one.words));
}

TEST(TriggerFile, TellsAllProblemsUpToALimit) {
  std::string text = "[a]\nwhen = never\nnonsense\n[b]\nwhen = post\nper-hour = 0\n";
  EXPECT_EQ(ParseTriggerFile(text).problems.size(), 3u);
  for (int i = 0; i < 1000; ++i) text += "nonsense\n";
  EXPECT_EQ(ParseTriggerFile(text).problems.size(), limits::kTriggerProblemsMax);
}

TEST(TriggerFile, HasALimitOnEverything) {
  std::string rules;
  for (uint32_t i = 0; i < limits::kTriggerRulesMax; ++i) {
    rules += "[r" + std::to_string(i) + "]\nwhen = post\n";
  }
  EXPECT_TRUE(ParseTriggerFile(rules).problems.empty());
  EXPECT_THAT(ProblemOf(rules + "[one-more]\nwhen = post\n"), HasSubstr("more than 256 rules"));
  const std::string line = "[a]\nwhen = post\njob = " + std::string(5'000, 'x') + "\n";
  EXPECT_THAT(ProblemOf(line), HasSubstr("the line is longer than 4096 bytes"));
  const std::string job = "[a]\nwhen = post\njob = " + std::string(600, 'x') + "\n";
  EXPECT_THAT(ProblemOf(job), HasSubstr("job is longer than 512 bytes"));
  EXPECT_THAT(ProblemOf(std::string(limits::kTriggerFileBytesMax + 1, '#')),
              HasSubstr("the file is larger than 262144 bytes"));
}

TEST(TriggerRule, IsCheckedByWhoeverGetsIt) {
  TriggerRule rule{.name = "x",
                   .kind = TriggerKind::kPost,
                   .cool_down_ns = kNsPerSecond,
                   .per_hour_max = 1,
                   .last_ns = kNsPerSecond};
  EXPECT_TRUE(CheckTriggerRule(rule).ok());
  rule.silent_ns = kNsPerSecond;
  EXPECT_THAT(std::string(CheckTriggerRule(rule).message()),
              HasSubstr("rule 'x': silent-for is for"));
  rule = {.name = "x", .kind = static_cast<TriggerKind>(77)};
  EXPECT_EQ(CheckTriggerRule(rule).code(), absl::StatusCode::kInvalidArgument);
}

TEST(ReadTriggerFile, AnEmptyFileIsNoFileWithoutRules) {
  const std::string path = testing::TempDir() + "/empty_triggers.ini";
  for (const char* const text : {"", " \n\r\n"}) {
    std::ofstream(path) << text;
    EXPECT_THAT(std::string(ReadTriggerFile(path).status().message()), HasSubstr("is empty"));
  }
  std::ofstream(path) << "# none\n";
  EXPECT_EQ(ReadTriggerFile(path)->size(), 0u);
}

TEST(ReadTriggerFile, SaysWhatKeepsItFromReading) {
  const std::string path = testing::TempDir() + "/neurontrace-triggers-test";
  std::remove(path.c_str());
  EXPECT_EQ(ReadTriggerFile(path).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadTriggerFile(testing::TempDir()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  std::ofstream(path) << "[a]\nwhen = post\n";
  EXPECT_EQ(ReadTriggerFile(path)->size(), 1u);
  std::ofstream(path) << "[a]\nwhen = pots\n";
  EXPECT_THAT(std::string(ReadTriggerFile(path).status().message()),
              HasSubstr(path + ":2: rule a: when = pots"));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace neurontrace
