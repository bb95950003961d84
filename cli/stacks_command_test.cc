// SPDX-License-Identifier: Apache-2.0
// Goal: `stacks` asks for the ranks that were typed, waits until every worker has an outcome, and
// its exit code says whether all stacks were taken; `why` prints them under the hang.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command_test_support.h"
#include "cli/why_view.h"

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;

v1::StacksReport SomeStacks() {
  v1::StacksReport report;
  report.set_capture_id(kCaptureId);
  report.set_job("llama");
  report.set_reason("asked for by \x1b[31mme");
  report.set_asked_realtime_ns(1'750'000'000'000'000'000);
  for (int i = 0; i < 4; ++i) report.add_members()->set_outcome(v1::STACKS_OUTCOME_TAKEN);
  v1::StackNode& main = *report.add_nodes();
  main.set_function("main");
  main.set_file("train.py");
  main.mutable_members()->Add(0);
  v1::StackNode& odd = *report.add_nodes();
  odd.set_depth(1);
  odd.set_function("load");
  odd.add_members(0);
  odd.set_is_minority(true);
  report.add_lines("3 of 4: gid 0-2: main (train.py)");
  report.add_lines("odd: gid 3 after main (train.py): load");
  return report;
}

class StacksCommandTest : public CommandLineTest {
 protected:
  StacksCommandTest() { service_.stacks = SomeStacks(); }
};

TEST_F(StacksCommandTest, WaitsAndPrintsTheTree) {
  service_.stacks.set_pending(1);
  EXPECT_EQ(RunCli({"stacks", "--worker-gid", "0-2,7", "--job", "llama"}), kExitDone) << err_;
  EXPECT_EQ(service_.stacks.pending(), 0u);
  ASSERT_EQ(service_.stacks_request.worker_gids_size(), 2);
  EXPECT_EQ(service_.stacks_request.worker_gids(1).first(), 7);
  EXPECT_EQ(service_.stacks_request.job(), "llama");
  EXPECT_THAT(out_, HasSubstr("odd: gid 3 after main (train.py): load\n"));
  EXPECT_THAT(out_, HasSubstr("*  load\n"));
  EXPECT_THAT(out_, ::testing::Not(HasSubstr("\x1b")));
}

TEST_F(StacksCommandTest, ReportsIncompleteStacks) {
  service_.stacks.mutable_members(2)->set_outcome(v1::STACKS_OUTCOME_NOT_PERMITTED);
  EXPECT_EQ(RunCli({"stacks", kCaptureId, "--show", "--json"}), kExitIncomplete) << err_;
  EXPECT_THAT(out_, HasSubstr("STACKS_OUTCOME_NOT_PERMITTED"));
  EXPECT_EQ(RunCli({"stacks", "--show"}), kExitUsage);
  EXPECT_EQ(RunCli({"stacks", "--worker-gid", "x"}), kExitUsage);
}

TEST(FormatInsight, PrintsStacksUnderTheHangOfTheirJob) {
  v1::InsightReport report;
  v1::Verdict& slow = *report.add_verdicts();
  slow.set_kind(v1::VERDICT_KIND_SLOW_CORE);
  slow.set_text("SLOW");
  v1::Verdict& hang = *report.add_verdicts();
  hang.set_kind(v1::VERDICT_KIND_HANG_INSIDE);
  hang.set_text("HANG");
  hang.add_suspects()->set_job("llama");
  report.set_text("8 of 8 cores judged");
  *report.add_stacks() = SomeStacks();
  const std::string text = FormatInsight(report, 0);
  EXPECT_LT(text.find("SLOW"), text.find("HANG"));
  EXPECT_LT(text.find("HANG"), text.find("odd: gid 3"));
  EXPECT_LT(text.find("odd: gid 3"), text.find("8 of 8"));
  report.mutable_stacks(0)->set_job("other");
  EXPECT_THAT(FormatInsight(report, 0), HasSubstr("odd: gid 3")) << "never left out";
}

}  // namespace
}  // namespace neurontrace::cli
