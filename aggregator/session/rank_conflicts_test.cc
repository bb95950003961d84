// SPDX-License-Identifier: Apache-2.0
// Two live cores of one job with one rank are a conflict; nothing else is.
#include "aggregator/session/rank_conflicts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RankClaim Claim(const std::string& instance_id, int64_t gid, uint64_t first = 100,
                uint64_t last = 200) {
  RankClaim claim{
      .job = "j", .worker_gid = gid, .first_timestamp_ns = first, .last_timestamp_ns = last};
  claim.stream.worker.instance_id = instance_id;
  claim.stream.kind = StreamKind::kNeuronCore;
  return claim;
}

TEST(RankConflicts, NamesBothOfTwoLiveCores) {
  const std::vector<RankClaim> claims = {Claim("i-a", 7), Claim("i-b", 7, 150, 300),
                                         Claim("i-c", 8)};
  EXPECT_THAT(FindRankConflicts(claims), ElementsAre(AllOf(HasSubstr("worker_gid 7 of job j"),
                                                           HasSubstr("i-a"), HasSubstr("i-b"))));
}

TEST(RankConflicts, FindsThemBehindAShortOne) {
  const std::vector<RankClaim> claims = {Claim("i-a", 7, 0, 1'000), Claim("i-b", 7, 2'000, 2'001),
                                         Claim("i-c", 7, 2'500, 2'600),
                                         Claim("i-d", 7, 2'000, 9'000)};
  EXPECT_EQ(FindRankConflicts(claims).size(), 1u);
}

TEST(RankConflicts, ARestartedWorkerAnotherJobAndAnUnknownRankAreNone) {
  RankClaim other_job = Claim("i-b", 7);
  other_job.job = "k";
  RankClaim framework = Claim("i-b", 7);
  framework.stream.kind = StreamKind::kFramework;
  const std::vector<RankClaim> claims = {
      Claim("i-a", 7, 100, 200), Claim("i-a", 7, 201, 300), other_job, framework,
      Claim("i-x", -1),          Claim("i-y", -1)};
  EXPECT_THAT(FindRankConflicts(claims), IsEmpty());
}

}  // namespace
}  // namespace neurontrace
