// SPDX-License-Identifier: Apache-2.0
// What `workers` prints, letter by letter, of a few workers and of a thousand.
#include "cli/workers_view.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace neurontrace::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

v1::WorkerInventory& AddListed(v1::ListWorkersReply& reply, uint32_t pid, int64_t first_gid,
                               int cores) {
  v1::WorkerInventory& worker = *reply.add_workers();
  worker.mutable_identity()->set_instance_id(fmt::format("i-{:04}", pid / 32));
  worker.mutable_identity()->set_pid(pid);
  worker.set_state(v1::WORKER_STATE_IDLE);
  worker.set_job("llama");
  worker.set_command("/usr/bin/python3");
  for (int i = 0; i < cores; ++i) {
    v1::CoreInventory& core = *worker.add_cores();
    core.set_nc_idx(i);
    if (first_gid < 0) continue;
    v1::RankEvidence& evidence = *core.add_rank_evidence();
    evidence.set_worker_gid(first_gid + i);
    evidence.set_detail(fmt::format("RANK={}", first_gid));
  }
  return worker;
}

v1::JobRanks& AddJob(v1::ListWorkersReply& reply, uint64_t workers, int64_t seen, int64_t world) {
  v1::JobRanks& job = *reply.add_jobs();
  job.set_job("llama");
  job.set_workers(workers);
  job.set_cores(2 * workers);
  job.set_ranks_seen(seen);
  job.set_world_size(world);
  return job;
}

size_t LinesOf(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(WorkersViewTest, FormatsExampleInRankOrder) {
  v1::ListWorkersReply reply;
  v1::JobRanks& job = AddJob(reply, 3, 3, 8);
  job.set_cores_without_rank(2);
  job.set_disputes_count(1);
  job.add_conflicts("worker_gid 3 of job llama is claimed by 2 cores at once");
  AddListed(reply, 42, 2, 2);
  AddListed(reply, 41, -1, 2).add_warnings("SLURM_PROCID=1 is ignored: it counts nodes");
  v1::WorkerInventory& first = AddListed(reply, 43, 0, 2);
  first.set_command("/opt/venv/bin/a-trainer-with-a-name-that-is-far-too-long-for-a-table");
  first.set_state(v1::WORKER_STATE_FAILED);
  first.set_detail("its buffer cannot be read");
  EXPECT_EQ(FormatWorkers(reply, {}),
            R"(JOB    WORKERS  CORES  RANKS SEEN  UNKNOWN  TWICE  CONTRADICTED
llama        3      6  3 of 8            2      1             0

INSTANCE  PID  STATE   CORES  WORKER GIDS  EVIDENCE  JOB    COMMAND
i-0001     43  failed      2  0-1          RANK=0    llama  a-trainer-with-a-name-that-is-far-too-l…
i-0001     42  ready       2  2-3          RANK=2    llama  python3
i-0001     41  ready       2  unknown      -         llama  python3
conflict: worker_gid 3 of job llama is claimed by 2 cores at once
i-0001 pid 43: failed: its buffer cannot be read
warning: i-0001 pid 41: SLURM_PROCID=1 is ignored: it counts nodes
)");
  EXPECT_THAT(FormatWorkers(reply, {.wide = true}), HasSubstr("for-a-table\n"));
  EXPECT_EQ(FormatWorkers(reply, {.brief = true}),
            R"(JOB    WORKERS  CORES  RANKS SEEN  UNKNOWN  TWICE  CONTRADICTED
llama        3      6  3 of 8            2      1             0
3 workers: 1 failed, 2 ready
conflict: worker_gid 3 of job llama is claimed by 2 cores at once
i-0001 pid 43: failed: its buffer cannot be read
warning: i-0001 pid 41: SLURM_PROCID=1 is ignored: it counts nodes
)");
}

TEST(WorkersViewTest, StatesAreFoundByTheirBeginning) {
  v1::WorkerInventory worker;
  worker.set_state(v1::WORKER_STATE_BUSY_OTHER_PROFILER);
  EXPECT_TRUE(IsInState(worker, "busy"));
  EXPECT_TRUE(IsInState(worker, ""));
  EXPECT_FALSE(IsInState(worker, "ready"));
}

// A line for each worker and none for each of their equal warnings; --brief has a few lines.
TEST(WorkersViewTest, AThousandWorkersAreATableAndAFewLines) {
  constexpr uint32_t kWorkers = 1'024;
  v1::ListWorkersReply reply;
  AddJob(reply, kWorkers, 2 * kWorkers, 2 * kWorkers);
  for (uint32_t i = 0; i < kWorkers; ++i) {
    const uint32_t pid = kWorkers - i;
    v1::WorkerInventory& worker = AddListed(reply, pid, 2 * (pid - 1), 2);
    worker.add_warnings(fmt::format("SLURM_PROCID={} gives rank {}, used is {} from \"RANK={}\"",
                                    pid / 32, pid / 32, 2 * pid, pid));
    worker.add_warnings("no pod is known");
  }
  const std::string text = FormatWorkers(reply, {});
  EXPECT_EQ(LinesOf(text), 2u + 1 + 1 + kWorkers + 2);
  EXPECT_THAT(text, StartsWith("JOB    WORKERS  CORES  RANKS SEEN    UNKNOWN  TWICE  "
                               "CONTRADICTED\nllama    1,024  2,048  2048 of 2048        0"));
  EXPECT_LT(text.find(" 0-1 "), text.find(" 2-3 "));
  EXPECT_LT(text.find(" 998-999 "), text.find(" 1000-1001 "));
  EXPECT_THAT(text, EndsWith("from \"RANK=1\" (and 1023 more like this)\n"
                             "warning: i-0000 pid 1: no pod is known (and 1023 more like this)\n"));
  EXPECT_EQ(LinesOf(FormatWorkers(reply, {.brief = true})), 5u);
  EXPECT_THAT(FormatWorkers(reply, {.brief = true}), HasSubstr("1,024 workers: 1024 ready\n"));
  EXPECT_THAT(FormatWorkers(reply, {.wide = true}), Not(HasSubstr("more like this")));
}

}  // namespace
}  // namespace neurontrace::cli
