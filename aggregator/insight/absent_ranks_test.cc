// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/absent_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "aggregator/insight/verdict_text.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

InsightCore CoreOf(int64_t rank, uint32_t world) {
  return {.job = "llama",
          .instance_id = "i-a",
          .worker_gid = rank,
          .nc_idx = static_cast<uint32_t>(rank + 1),
          .world_size = world};
}

// The ranks [0, count) but those that are left out.
std::vector<InsightCore> AllBut(std::vector<int64_t> left_out, int64_t count) {
  std::vector<InsightCore> cores;
  for (int64_t rank = 0; rank < count; ++rank) {
    if (std::ranges::count(left_out, rank) == 0)
      cores.push_back(CoreOf(rank, static_cast<uint32_t>(count)));
  }
  return cores;
}

TEST(AbsentRanks, NamesTheRanksThatAWorldLacks) {
  EXPECT_THAT(FindAbsentRanks(AllBut({}, 16), {}), IsEmpty());
  const auto one = FindAbsentRanks(AllBut({7}, 16), {});
  ASSERT_THAT(one, SizeIs(1));
  EXPECT_EQ(one[0].reason, RefusalReason::kCoverage);
  EXPECT_EQ(one[0].count, 1u);
  EXPECT_THAT(one[0].cores, IsEmpty());
  EXPECT_THAT(one[0].missing, StartsWith("No events from 1 of 16 ranks of job llama (7): it is"));
  const auto some = FindAbsentRanks(AllBut({0, 3, 4, 5, 15}, 16), {});
  EXPECT_THAT(some[0].missing, HasSubstr("5 of 16 ranks of job llama (0, 3-5, 15): "));
}

TEST(AbsentRanks, BoundsAClaimedWorldAndTheText) {
  const auto huge = FindAbsentRanks(std::vector{CoreOf(2, UINT32_MAX)}, {});
  ASSERT_THAT(huge, SizeIs(1));
  EXPECT_EQ(huge[0].count, UINT32_MAX - 1ull);
  EXPECT_THAT(huge[0].missing, HasSubstr(" (0-1, 3-4294967294): "));
  std::vector<int64_t> every_second;
  for (int64_t rank = 0; rank < 40; rank += 2) every_second.push_back(rank);
  const auto many = FindAbsentRanks(AllBut(every_second, 40), {});
  EXPECT_THAT(many[0].missing, HasSubstr(" (0, 2, 4, 6, 8, 10, 12, 14 and 12 more): "));
  EXPECT_LT(many[0].missing.size(), 400u);
}

TEST(AbsentRanks, KnowsNoNumbersWithoutRanks) {
  std::vector<InsightCore> cores = AllBut({7}, 16);
  cores[3].worker_gid = -1;
  EXPECT_THAT(FindAbsentRanks(cores, {})[0].missing,
              HasSubstr("1 of 16 ranks of job llama (some cores have no known rank): "));
}

// Ranks can be numbered from another value on, and two processes can have had one rank.
TEST(AbsentRanks, AWorldThatIsCompleteLacksNobody) {
  std::vector<InsightCore> shifted;
  for (int64_t rank = 1; rank <= 16; ++rank) shifted.push_back(CoreOf(rank, 16));
  EXPECT_THAT(FindAbsentRanks(shifted, {}), IsEmpty());
  EXPECT_THAT(FindAbsentRanks(std::vector{CoreOf(0, 0), CoreOf(5, 0)}, {}), IsEmpty());
}

TEST(AbsentRanks, NamesSilentCoresOfAnUnknownWorld) {
  const std::vector<InsightCore> cores = {CoreOf(0, 0), CoreOf(1, 0)};
  const auto silent =
      FindAbsentRanks(cores, std::vector{CoreOf(1, 0), CoreOf(2, 0), CoreOf(-1, 0)});
  ASSERT_THAT(silent, SizeIs(1));
  EXPECT_EQ(silent[0].count, 2u);
  EXPECT_THAT(silent[0].missing, StartsWith("No events from rank 2, i-a nc 0 of job llama: it is"));
}

TEST(AbsentRanks, CallsAJobWithoutANameByNoName) {
  std::vector<InsightCore> cores = AllBut({7}, 16);
  for (InsightCore& core : cores) {
    core.job = "world of 16";
    core.has_job_name = false;
  }
  EXPECT_THAT(FindAbsentRanks(cores, {})[0].missing,
              StartsWith("No events from 1 of 16 ranks of a job without a name (7): it is"));
}

TEST(AbsentRanks, BoundsTheNamesOfSilentCores) {
  std::vector<InsightCore> silent(9, CoreOf(-1, 0));
  for (uint32_t i = 0; i < silent.size(); ++i) silent[i].nc_idx = i;
  EXPECT_THAT(FindAbsentRanks(std::vector{CoreOf(0, 0)}, silent)[0].missing,
              StartsWith("No events from i-a nc 0, i-a nc 1, i-a nc 2, i-a nc 3 and 5 more without "
                         "a rank of job llama: it is"));
}

TEST(AbsentRanks, QualifyThatNobodyIsNamed) {
  InsightReport report{.cores = 15, .cores_judged = 15};
  EXPECT_THAT(ReportText(report, {}), StartsWith("Nobody to name: "));
  report.refusals = FindAbsentRanks(AllBut({7}, 16), {});
  EXPECT_THAT(ReportText(report, {}),
              StartsWith("Nobody to name among the cores that were read: "));
  EXPECT_THAT(RefusalText(report.refusals[0], {}),
              StartsWith("REFUSED coverage: No events from 1 of 16 ranks"));
}

TEST(AbsentRanks, ARankThatTwoCoresClaimHidesNoAbsentOne) {
  const std::vector<Refusal> refusals =
      FindAbsentRanks(std::vector{CoreOf(0, 4), CoreOf(1, 4), CoreOf(2, 4), CoreOf(2, 4)}, {});
  ASSERT_THAT(refusals, SizeIs(1));
  EXPECT_EQ(refusals[0].count, 1u);
  EXPECT_THAT(refusals[0].missing, HasSubstr("No events from 1 of 4 ranks of job llama (3):"));
}

}  // namespace
}  // namespace neurontrace
