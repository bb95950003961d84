// SPDX-License-Identifier: Apache-2.0
// Ranks compared over the workers of a job: what is claimed twice, unknown, missing, contradicted.
#include "aggregator/certificate/job_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/trace/rank_limits.h"

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Evidence = std::vector<RankEvidence>;

Evidence Rank(int64_t gid, int64_t world = 8) {
  return {{RankSource::kTorchrun, gid, world, "RANK=" + std::to_string(gid)}};
}

WorkerInfo RankedWorker(uint32_t pid, const std::string& job, std::vector<Evidence> cores,
                        const std::string& communicator = "", const std::string& host = "i-a") {
  WorkerInfo worker{.identity = {.instance_id = host, .boot_id = "b", .pid = pid},
                    .state = WorkerState::kIdle,
                    .job = job};
  for (Evidence& evidence : cores) {
    worker.cores.push_back({static_cast<uint32_t>(worker.cores.size()), std::move(evidence)});
  }
  if (!communicator.empty()) worker.job_facts = {{"comm", communicator}};
  return worker;
}

RankedCore CoreAt(uint32_t pid, int64_t gid, uint64_t first_ns, uint64_t last_ns) {
  return {.stream = {.worker = {.instance_id = "i-a", .pid = pid}, .kind = StreamKind::kNeuronCore},
          .evidence = Rank(gid),
          .first_ns = first_ns,
          .last_ns = last_ns};
}

std::vector<std::string> ConflictsOf(const std::vector<WorkerInfo>& workers) {
  std::vector<std::string> all;
  for (const JobRanks& job : CompareRanks(workers)) {
    const std::vector<std::string> more = DescribeConflicts(job);
    EXPECT_EQ(job.has_conflict(), !more.empty());
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

TEST(JobRanksTest, CountsSeenUnknownAndMissingRanks) {
  const std::vector<JobRanks> jobs =
      CompareRanks({RankedWorker(1, "llama", {Rank(0), Rank(1), {}}),
                    RankedWorker(2, "llama", {Rank(5)}), RankedWorker(3, "", {{}})});
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].job, "");
  EXPECT_EQ(jobs[0].cores_without_rank, 1u);
  EXPECT_EQ(jobs[1].job, "llama");
  EXPECT_EQ(jobs[1].workers, 2u);
  EXPECT_EQ(jobs[1].cores, 4u);
  EXPECT_EQ(jobs[1].ranks_seen, 3);
  EXPECT_EQ(jobs[1].world_size, 8);
  EXPECT_EQ(jobs[1].cores_without_rank, 1u);
  EXPECT_EQ(FormatRanges(jobs[1].never_seen), "2-4, 6-7");
  EXPECT_FALSE(jobs[1].has_conflict());
}

TEST(JobRanksTest, NamesAllClaimantsOfARank) {
  const std::vector<std::string> conflicts =
      ConflictsOf({RankedWorker(1, "j", {Rank(3)}), RankedWorker(2, "j", {Rank(3)}),
                   RankedWorker(3, "j", {Rank(4), Rank(3)}), RankedWorker(4, "k", {Rank(3)})});
  EXPECT_THAT(conflicts, ElementsAre("worker_gid 3 of job j is claimed by 3 cores at once: i-a pid "
                                     "1 nc 0 (RANK=3), i-a pid 2 nc 0 (RANK=3), i-a pid 3 nc 1 "
                                     "(RANK=3); they are shown separately"));
}

TEST(JobRanksTest, JobsOfOneCommunicatorAreOne) {
  const std::vector<WorkerInfo> workers = {RankedWorker(1, "4711", {Rank(0)}, "10.0.0.1:62182"),
                                           RankedWorker(2, "llama", {Rank(0)}, "10.0.0.1:62182"),
                                           RankedWorker(3, "", {Rank(1)}, "10.0.0.1:62182")};
  const std::vector<JobRanks> jobs = CompareRanks(workers);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].job, "4711");
  EXPECT_THAT(jobs[0].other_names, ElementsAre("llama"));
  EXPECT_EQ(jobs[0].workers, 3u);
  EXPECT_THAT(ConflictsOf(workers), ElementsAre(AllOf(HasSubstr("pid 1 nc 0 (RANK=0)"),
                                                      HasSubstr("pid 2 nc 0 of job llama"))));
}

TEST(JobRanksTest, AWorkerThatIsAWholeWorldIsAJobOfItsOwn) {
  const Evidence first = Rank(0, 2);
  const Evidence second = Rank(1, 2);
  const WorkerInfo one = RankedWorker(1, "", {first, second});
  EXPECT_EQ(CompareRanks({one}).at(0).ranks_seen, 2);
  EXPECT_THAT(
      ConflictsOf({one, RankedWorker(2, "", {first, second}), RankedWorker(3, "", {Rank(0, 1)})}),
      IsEmpty());
  EXPECT_EQ(ConflictsOf({RankedWorker(1, "", {first}), RankedWorker(2, "", {first})}).size(), 1u)
      << "each is a part of a world";
  EXPECT_EQ(
      ConflictsOf({RankedWorker(1, "j", {Rank(0, 1)}), RankedWorker(2, "j", {Rank(0, 1)})}).size(),
      1u)
      << "they say that they are of one job";
}

TEST(JobRanksTest, WorkersWithoutJobBelongToTheirWorld) {
  const auto torchrun = [](uint32_t pid, int64_t rank, const std::string& master) {
    WorkerInfo worker = RankedWorker(pid, "", {Rank(rank, 2)});
    worker.job_facts = {{"master", master}};
    return worker;
  };
  const std::vector<WorkerInfo> two = {torchrun(1, 0, "h:1"), torchrun(2, 1, "h:1"),
                                       torchrun(3, 0, "h:2"), torchrun(4, 1, "h:2")};
  EXPECT_THAT(ConflictsOf(two), IsEmpty());
  EXPECT_EQ(CompareRanks(two).size(), 2u);
  EXPECT_EQ(ConflictsOf({torchrun(1, 0, "h:1"), torchrun(2, 0, "h:1")}).size(), 1u);
}

TEST(JobRanksTest, ALoopbackAddressIsEveryNodesOwn) {
  for (const std::string root : {"127.0.0.1:62182", "localhost:62182", "[::1]:62182"}) {
    // The root may be all that names the job.
    for (const std::string& job : {std::string(), root}) {
      EXPECT_THAT(ConflictsOf({RankedWorker(1, job, {Rank(0)}, root, "i-a"),
                               RankedWorker(1, job, {Rank(0)}, root, "i-b")}),
                  IsEmpty());
      EXPECT_EQ(ConflictsOf(
                    {RankedWorker(1, job, {Rank(0)}, root), RankedWorker(2, job, {Rank(0)}, root)})
                    .size(),
                1u);
    }
  }
}

TEST(JobRanksTest, OnlyClaimsOfTheSameTimeAreADispute) {
  const auto disputes = [](const std::vector<RankedCore>& cores) {
    JobRankCensus census;
    for (const RankedCore& core : cores) census.AddCore("j", core);
    return census.Jobs().at(0).disputes_count;
  };
  EXPECT_EQ(disputes({CoreAt(1, 7, 100, 200), CoreAt(2, 7, 201, 300)}), 0u) << "a restart";
  EXPECT_EQ(disputes({CoreAt(1, 7, 100, 200), CoreAt(2, 7, 200, 300)}), 1u);
  EXPECT_EQ(disputes({CoreAt(1, 7, 0, 1'000), CoreAt(2, 7, 2'000, 2'001),
                      CoreAt(3, 7, 2'500, 2'600), CoreAt(4, 7, 2'000, 9'000)}),
            1u);
  EXPECT_EQ(disputes({CoreAt(1, 7, 100, 200), CoreAt(2, 7, UINT64_MAX, 0)}), 0u) << "no event";
  EXPECT_EQ(disputes({CoreAt(1, -1, 100, 200), CoreAt(2, -1, 100, 200)}), 0u) << "no rank";
}

TEST(JobRanksTest, WorldSizesThatContradictEachOtherAreAConflict) {
  EXPECT_THAT(
      ConflictsOf(
          {RankedWorker(1, "j", {Rank(0, 8), Rank(1, 8)}), RankedWorker(2, "j", {Rank(2, 16)})}),
      ElementsAre("the workers of job j report different world sizes: 8 (2 cores: i-a pid 1 "
                  "nc 0 (RANK=0) and 1 more), 16 (1 core: i-a pid 2 nc 0 (RANK=2))"));
  EXPECT_THAT(ConflictsOf({RankedWorker(1, "j", {Rank(9, 8)})}),
              ElementsAre("1 rank of job j is not below the world size of 8"));
}

// Whoever weighed the evidence says whether the best one is in doubt: what a guess contradicts is
// not.
TEST(JobRanksTest, EvidenceThatIsNotTheBestContradictsNothing) {
  Evidence both = Rank(3);
  both.push_back({RankSource::kSlurm, 0, 8, "SLURM_PROCID=0"});
  const JobRanks job = CompareRanks({RankedWorker(1, "j", {both, Rank(4)})}).at(0);
  EXPECT_EQ(job.cores_contradicted, 0u);
  EXPECT_FALSE(job.has_conflict());
}

TEST(JobRanksTest, CountsGuessesAndContradictions) {
  Evidence guess = Rank(3);
  guess[0].guessed = true;
  Evidence disputed = Rank(4);
  disputed[0].contradicted = true;
  const JobRanks job = CompareRanks({RankedWorker(1, "j", {guess, disputed, Rank(5)})}).at(0);
  EXPECT_EQ(job.cores_guessed, 1u);
  EXPECT_EQ(job.cores_contradicted, 1u);
}

TEST(JobRanksTest, ClosedRuntimeClaimsNothing) {
  WorkerInfo closed = RankedWorker(1, "j", {Rank(3)});
  closed.state = WorkerState::kClosed;
  EXPECT_THAT(ConflictsOf({closed, RankedWorker(2, "j", {Rank(3)})}), IsEmpty());
}

TEST(JobRanksTest, NamesLimitedNumberAndCountsAll) {
  std::vector<WorkerInfo> workers;
  constexpr uint32_t kWorkers = 1'024;
  for (uint32_t pid = 0; pid < kWorkers; ++pid) {
    workers.push_back(RankedWorker(pid, "j", {Rank(pid % 100, kWorkers)}));
  }
  const JobRanks job = CompareRanks(workers).at(0);
  EXPECT_EQ(job.disputes_count, 100u);
  EXPECT_EQ(job.disputes.size(), limits::kRankDisputesNamedMax);
  const std::vector<std::string> conflicts = DescribeConflicts(job);
  EXPECT_EQ(conflicts.size(), limits::kRankDisputesNamedMax + 1);
  EXPECT_THAT(conflicts.back(), HasSubstr("68 more worker_gids of job j"));
  workers.clear();
  for (uint32_t pid = 0; pid < kWorkers; ++pid) {
    workers.push_back(RankedWorker(pid, "j", {Rank(0, kWorkers)}));
  }
  EXPECT_THAT(DescribeConflicts(CompareRanks(workers).at(0)),
              ElementsAre(AllOf(HasSubstr("by 1024 cores at once"), HasSubstr("and 1008 more"))));
}

}  // namespace
}  // namespace neurontrace
