// SPDX-License-Identifier: Apache-2.0
// Goal: a report reaches operators with everything in it, bounded, and with a command that a shell
// takes as one. Method: reports made by hand.
#include "aggregator/operator/insight_message.h"

#include <gmock/gmock.h>

#include <vector>

namespace neurontrace {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kNow = 1'750'000'000'000'000'000u;

std::vector<InsightCore> Cores(uint32_t count, bool has_ranks = true) {
  std::vector<InsightCore> cores;
  for (uint32_t i = 0; i < count; ++i) {
    cores.push_back({.job = "llama",
                     .instance_id = "i-a",
                     .process = (uint64_t{1} << 32) | 4711,
                     .worker_gid = has_ranks ? int64_t{i} : -1,
                     .nc_idx = i});
  }
  return cores;
}

TEST(InsightMessageTest, HasEveryFigureOfAVerdict) {
  InsightReport report{.cores = 8, .cores_judged = 7, .executions = 214, .step_ns = 500};
  report.verdicts.push_back({.kind = VerdictKind::kSlowCore,
                             .suspects = {5},
                             .phase = InsightPhase::kDevice,
                             .role = "llama#2",
                             .peers = 63,
                             .ratio = 1.31,
                             .z = 41,
                             .executions = 213,
                             .judged = 214,
                             .since_ns = kNow,
                             .until_ns = kNow + 100,
                             .cost_ns = 118,
                             .step_ns = 500'000'000,
                             .waiting = 6,
                             .exec_id = 3,
                             .op_id = 17,
                             .ruled_out = {{.what = "host", .ratio = 0.99}}});
  report.refusals.push_back({.reason = RefusalReason::kLosses,
                             .cores = {6},
                             .begin_ns = kNow,
                             .end_ns = kNow + 9,
                             .count = 4,
                             .missing = "4 events"});
  const v1::InsightReport message =
      ToMessage(report, Cores(8),
                {.id = "01JD8Z2M6WQJ4V1T0S3R5XK7PA", .first_event_ns = kNow - 4'203'000'700});
  ASSERT_EQ(message.verdicts_size(), 1);
  const v1::Verdict& verdict = message.verdicts(0);
  EXPECT_EQ(verdict.kind(), v1::VERDICT_KIND_SLOW_CORE);
  ASSERT_EQ(verdict.suspects_size(), 1);
  EXPECT_EQ(verdict.suspects(0).worker_gid(), 5);
  EXPECT_EQ(verdict.suspects(0).pid(), 4711u);
  EXPECT_EQ(verdict.suspects_total(), 1u);
  EXPECT_EQ(verdict.phase(), "device");
  EXPECT_EQ(verdict.executions(), 213u);
  EXPECT_EQ(verdict.op_id(), 17u);
  EXPECT_EQ(verdict.ruled_out(0).what(), "host");
  EXPECT_FALSE(verdict.text().empty());
  EXPECT_EQ(verdict.look(),
            "neurontrace export 01JD8Z2M6WQJ4V1T0S3R5XK7PA --worker-gid 5 "
            "--from 3.703s --to 8.203001s");
  ASSERT_EQ(message.refusals_size(), 1);
  EXPECT_EQ(message.refusals(0).reason(), "losses");
  EXPECT_EQ(message.refusals(0).cores(0).nc_idx(), 6u);
  EXPECT_EQ(message.cores_judged(), 7u);
  EXPECT_FALSE(message.refusals(0).text().empty());
  EXPECT_FALSE(message.rule_version().empty());
  EXPECT_FALSE(message.text().empty());
}

TEST(InsightMessageTest, NamesAsManyCoresAsItMay) {
  InsightReport report;
  Verdict& verdict = report.verdicts.emplace_back();
  verdict.since_ns = kNow;
  for (uint32_t i = 0; i < 100; ++i) verdict.suspects.push_back(i);
  const v1::InsightReport message = ToMessage(report, Cores(100), {.id = "01JD"});
  EXPECT_EQ(static_cast<size_t>(message.verdicts(0).suspects_size()), kInsightCoresNamed);
  EXPECT_EQ(message.verdicts(0).suspects_total(), 100u);
  // Too many ranks for a line, and one instance has all of them.
  EXPECT_THAT(message.verdicts(0).look(), HasSubstr(" --instance i-a "));
}

TEST(InsightMessageTest, QuotesWhatOthersNamed) {
  std::vector<InsightCore> cores = Cores(1, /*has_ranks=*/false);
  cores[0].instance_id = "i'; rm -r x";
  InsightReport report;
  report.verdicts.push_back({.suspects = {0}, .since_ns = kNow});
  EXPECT_THAT(ToMessage(report, cores, {.id = "01JD"}).verdicts(0).look(),
              HasSubstr("--instance 'i'\\''; rm -r x' --from"));
  // The first event of a running capture may still change.
  EXPECT_THAT(ToMessage(report, cores, {.id = "01JD"}).verdicts(0).look(),
              EndsWith(" --from 1749999999000000000 --to 1750000001000000000"));
}

// Ranks are counted in each job.
TEST(InsightMessageTest, ACommandNamesTheJobIfThereAreSeveral) {
  std::vector<InsightCore> cores = Cores(2);
  InsightReport report;
  report.verdicts.push_back({.suspects = {1}, .since_ns = kNow});
  const auto look = [&] { return ToMessage(report, cores, {.id = "01JD"}).verdicts(0).look(); };
  EXPECT_THAT(look(), Not(HasSubstr("--job")));
  cores[0].job = "other";
  cores[1].job = "llama 2";
  EXPECT_THAT(look(), HasSubstr(" --worker-gid 1 --job 'llama 2' --from"));
  cores[1].job.clear();
  EXPECT_THAT(look(), HasSubstr(" --worker-gid 1 --instance i-a --from"));
  cores[1].job = "world of 64";
  cores[1].has_job_name = false;
  EXPECT_THAT(look(), HasSubstr(" --worker-gid 1 --instance i-a --from"));
  EXPECT_EQ(ToMessage(report, cores, {.id = "01JD"}).verdicts(0).suspects(0).job(), "");
}

TEST(InsightMessageTest, WithoutACaptureThereIsNothingToExport) {
  InsightReport report;
  report.verdicts.push_back({.suspects = {0}, .since_ns = kNow});
  EXPECT_EQ(ToMessage(report, Cores(1), {}).verdicts(0).look(), "");
  // Nobody is named: the command shows all ranks.
  report.verdicts[0].suspects.clear();
  EXPECT_THAT(ToMessage(report, Cores(1), {.id = "01JD"}).verdicts(0).look(),
              Not(HasSubstr("--worker")));
}

}  // namespace
}  // namespace neurontrace
