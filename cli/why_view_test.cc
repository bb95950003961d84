// SPDX-License-Identifier: Apache-2.0
// Goal: the answer comes first, each line fits the terminal, and a watch prints what changed alone.
#include "cli/why_view.h"

#include <gmock/gmock.h>

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr uint64_t kNow = 1'750'000'000'250'000'000u;

v1::InsightReport Slow(int64_t rank) {
  v1::InsightReport report;
  report.set_cores(64);
  report.set_cores_judged(64);
  report.set_begin_ns(kNow - 1'500'000'000);
  report.set_text("1 verdict, 0 refusals; 64 of 64 cores judged in 13,696 executions");
  v1::Verdict& verdict = *report.add_verdicts();
  verdict.set_kind(v1::VERDICT_KIND_SLOW_CORE);
  verdict.set_text(
      "SLOW slow-core: rank 13 (i-0abc nc 5), device work of llama: own work 1.31 times the median "
      "of its 63 peers");
  verdict.add_suspects()->set_worker_gid(rank);
  verdict.mutable_suspects(0)->set_nc_idx(static_cast<uint32_t>(rank));
  verdict.set_since_ns(kNow);
  verdict.set_until_ns(kNow + 2'000'000'000);
  v1::RuledOut& host = *verdict.add_ruled_out();
  host.set_what("host");
  host.set_ratio(0.99);
  v1::RuledOut& clock = *verdict.add_ruled_out();
  clock.set_what("clock");
  clock.set_figure("bound 9 us, lateness 118 ms");
  verdict.set_look("neurontrace export 01JD8Z2M6WQJ4V1T0S3R5XK7PA --worker-gid 13 --from 1 --to 2");
  return report;
}

v1::InsightReport Nobody() {
  v1::InsightReport report;
  report.set_cores(64);
  report.set_cores_judged(64);
  report.set_text("Nobody to name: cores wait 1 ms of a 50 ms step, less than 5 % or 1 ms");
  return report;
}

TEST(InsightViewTest, TheAnswerComesFirst) {
  EXPECT_EQ(FormatInsight(Slow(13), 0),
            "SLOW slow-core: rank 13 (i-0abc nc 5), device work of llama: own work 1.31 times the "
            "median of its 63 peers\n"
            "       since 2025-06-15 15:06:40.250Z (1.5 s after the begin) for 2.0 s\n"
            "       ruled out: host 0.99x, clock (bound 9 us, lateness 118 ms)\n"
            "       look: neurontrace export 01JD8Z2M6WQJ4V1T0S3R5XK7PA --worker-gid 13 --from 1 "
            "--to 2\n"
            "1 verdict, 0 refusals; 64 of 64 cores judged in 13,696 executions\n");
  EXPECT_EQ(ExitCodeOf(Slow(13)), kExitDone);
}

TEST(InsightViewTest, TheAnnotatedRangeIsBelowTheTime) {
  v1::InsightReport report = Slow(13);
  report.mutable_verdicts(0)->set_annotation("in the annotated range 'load': 31 ms\n");
  const std::string text = FormatInsight(report, 0);
  EXPECT_THAT(text, HasSubstr("for 2.0 s\n       in the annotated range 'load': 31 ms"));
  EXPECT_THAT(text, HasSubstr("\n       ruled out: "));
}

// Commands stay whole, because people copy them.
TEST(InsightViewTest, WrapsWhatIsNoCommand) {
  const std::string text = FormatInsight(Slow(13), 60);
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    const bool is_command = line.starts_with("       look: ");
    EXPECT_TRUE(is_command || line.size() <= 60) << line;
    at = end + 1;
  }
  EXPECT_THAT(text, HasSubstr("look: neurontrace export 01JD8Z2M6WQJ4V1T0S3R5XK7PA --worker-gid 13 "
                              "--from 1 --to 2\n"));
}

TEST(InsightViewTest, NamesNobodyAndHowMuchWasJudged) {
  EXPECT_THAT(FormatInsight(Nobody(), 0), StartsWith("Nobody to name: "));
  EXPECT_EQ(ExitCodeOf(Nobody()), kExitDone);
}

TEST(InsightViewTest, ARefusalMakesTheAnswerIncomplete) {
  v1::InsightReport report = Slow(13);
  v1::InsightRefusal& refusal = *report.add_refusals();
  refusal.set_reason("losses");
  refusal.set_text("REFUSED losses: ranks 3-5: 2 chunks lost\x1b[31m");
  refusal.set_begin_ns(kNow);
  refusal.set_end_ns(kNow + 1'200'000'000);
  report.set_cores_judged(61);
  report.add_warnings("1 of 5 chunks could not be read");
  const std::string text = FormatInsight(report, 0);
  EXPECT_THAT(text, HasSubstr("2 chunks lost"));
  EXPECT_THAT(text, HasSubstr("(at 2025-06-15 15:06:40.250Z, 1.2 s)\n"));
  EXPECT_THAT(text, HasSubstr("note: 1 of 5 chunks could not be read\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_EQ(ExitCodeOf(report), kExitIncomplete);
  // Nothing at all was judged.
  EXPECT_EQ(ExitCodeOf(v1::InsightReport()), kExitIncomplete);
}

TEST(InsightViewTest, AWatchPrintsChangesAlone) {
  InsightChanges changes;
  EXPECT_THAT(changes.Take(Nobody(), kNow, 0), StartsWith("Nobody to name: "));
  EXPECT_EQ(changes.Take(Nobody(), kNow, 0), "");
  EXPECT_THAT(changes.Take(Slow(13), kNow, 0),
              StartsWith("2025-06-15 15:06:40.250Z\nSLOW slow-core: "));
  // The same verdict with other figures is no change.
  v1::InsightReport again = Slow(13);
  again.mutable_verdicts(0)->set_ratio(1.4);
  again.mutable_verdicts(0)->set_text("SLOW slow-core: rank 13, 1.40x");
  EXPECT_EQ(changes.Take(again, kNow, 0), "");
  const std::string other = changes.Take(Slow(14), kNow, 0);
  EXPECT_THAT(other, HasSubstr("ENDED SLOW slow-core: rank 13, 1.40x\n"));
  EXPECT_THAT(other, StartsWith("2025-06-15 15:06:40.250Z\nSLOW slow-core: "));
  EXPECT_THAT(changes.Take(Nobody(), kNow, 0), HasSubstr("ENDED "));
}

// A restarted aggregator names the same rank after some time, and nobody before that.
TEST(InsightViewTest, ARestartOfTheAggregatorRepeatsAndEndsNothing) {
  constexpr uint64_t kSecond = 1'000'000'000;
  const auto of_run = [](v1::InsightReport report, uint64_t since_ns, uint64_t judged_ns) {
    report.set_live_since_ns(since_ns);
    report.set_end_ns(since_ns + judged_ns);
    return report;
  };
  v1::InsightReport empty;
  empty.add_refusals()->set_text("REFUSED too-short: rank 13");
  InsightChanges changes;
  EXPECT_THAT(changes.Take(of_run(Slow(13), kNow, kSecond), kNow, 0), HasSubstr("rank 13"));
  const uint64_t again = kNow + 60 * kSecond;
  const std::string restarted = changes.Take(of_run(empty, again, kSecond), kNow, 0);
  EXPECT_THAT(restarted, HasSubstr("RESTARTED "));
  EXPECT_THAT(restarted, Not(HasSubstr("ENDED")));
  EXPECT_THAT(restarted, Not(HasSubstr("REFUSED")));
  EXPECT_EQ(changes.Take(of_run(Slow(13), again, 5 * kSecond), kNow, 0), "");
  EXPECT_EQ(changes.Take(of_run(Nobody(), again, 29 * kSecond), kNow, 0), "");
  // What is new is reported at once.
  EXPECT_THAT(changes.Take(of_run(Slow(14), again, 29 * kSecond), kNow, 0), HasSubstr("SLOW "));
  const std::string settled = changes.Take(of_run(Slow(14), again, 30 * kSecond), kNow, 0);
  EXPECT_THAT(settled, HasSubstr("ENDED SLOW "));
  EXPECT_EQ(changes.Take(of_run(Slow(14), again, 31 * kSecond), kNow, 0), "");
}

}  // namespace
}  // namespace neurontrace::cli
