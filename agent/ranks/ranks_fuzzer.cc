// SPDX-License-Identifier: Apache-2.0
// Whatever the environments, communicator calls and events of a node's workers claim about their
// ranks: the answer is the same each time; cores ascend and are no more than a worker may have;
// each piece of evidence is a rank below the job's size where that is known; the best comes first,
// and each source claims one thing about a core; two workers that ran together claim one rank only
// with a mark; a place that was given is kept, and no two processes that live have one place.
//
// Each step is a byte, and what it needs: which fact of the newest worker, and its value; or the
// next worker.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/ranks/rank_resolver.h"
#include "lib/base/fuzz_input.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

constexpr const char* kNames[] = {"LOCAL_WORLD_SIZE",
                                  "OMPI_COMM_WORLD_LOCAL_SIZE",
                                  "NEURON_PJRT_PROCESS_INDEX",
                                  "NEURON_PJRT_PROCESSES_NUM_DEVICES",
                                  "NEURON_RT_VIRTUAL_CORE_SIZE",
                                  "NEURON_LOGICAL_NC_CONFIG",
                                  "NEURON_GLOBAL_DEVICE_ID",
                                  "NEURON_GLOBAL_DEVICE_COUNT",
                                  "RANK",
                                  "WORLD_SIZE",
                                  "TORCHELASTIC_RUN_ID",
                                  "GROUP_RANK",
                                  "NEURON_RT_VISIBLE_CORES",
                                  "LOCAL_RANK",
                                  "OMPI_COMM_WORLD_LOCAL_RANK",
                                  "OMPI_COMM_WORLD_RANK",
                                  "OMPI_COMM_WORLD_SIZE",
                                  "PMI_RANK",
                                  "PMI_SIZE",
                                  "SLURM_PROCID",
                                  "SLURM_NTASKS",
                                  "SLURM_NNODES",
                                  "SLURM_STEP_NUM_TASKS",
                                  "SLURM_STEP_TASKS_PER_NODE",
                                  "SLURM_LOCALID",
                                  "SLURM_HET_SIZE",
                                  "PET_NNODES",
                                  "PET_NODE_RANK",
                                  "PET_NPROC_PER_NODE",
                                  "MASTER_ADDR",
                                  "NEURONTRACE_WORKER_START_ID",
                                  "NEURONTRACE_WORKER_COUNT"};
constexpr size_t kNamesCount = std::size(kNames);
constexpr size_t kWorkersMax = 12;

// Never negative, as what names a rank comes here.
int64_t Rank(FuzzInput& input) { return static_cast<int64_t>(input.Number() & INT64_MAX); }

struct Node {
  std::vector<RankFacts> workers;
  ConfiguredRanks configured;
};

void ReadFact(FuzzInput& input, Node& node) {
  const uint8_t what = input.Byte();
  const size_t kind = what % (kNamesCount + 7);
  RankFacts& facts = node.workers.back();
  if (kind < kNamesCount) {
    facts.environment[kNames[kind]] =
        what < 128 ? std::to_string(input.Byte()) : std::string(input.Text(input.Byte() % 64));
    return;
  }
  switch (kind - kNamesCount) {
    case 0:
      facts.visible_cores = static_cast<uint32_t>(input.Number());
      break;
    case 1: {
      CommunicatorFact& fact = facts.communicators[static_cast<uint32_t>(input.Number())];
      fact.g_device_id = Rank(input);
      fact.g_device_count = static_cast<int64_t>(input.Number());
      break;
    }
    case 2: {
      const auto core = static_cast<uint32_t>(input.Number());
      facts.event_gids[core] = Rank(input);
      break;
    }
    case 3:
      facts.start_time_ticks = input.Number();
      facts.pid = input.Byte();
      facts.ancestors.push_back(input.Byte());
      facts.arrived_ns = input.Number();
      if (what < 128) facts.ended_ns = input.Number();
      break;
    case 4:
      facts.first_node_core = static_cast<uint32_t>(input.Number());
      facts.may_be_placed = what < 128;
      break;
    case 5:
      if (node.workers.size() < kWorkersMax) node.workers.push_back(facts);
      node.workers.back().job = std::string(input.Text(what < 128 ? 0 : 1));
      break;
    default:
      node.configured.worker_start_id = input.Byte();
      if (what < 128) node.configured.workers_per_node = input.Byte();
      node.configured.worker_count = input.Byte();
      break;
  }
}

void CheckWorker(const RankResolution& answer) {
  CheckPromise(std::ranges::is_sorted(answer.cores, {}, &CoreInfo::nc_idx), "cores ascend");
  CheckPromise(answer.cores.size() <= limits::kCoresPerWorkerMax, "a worker has so many cores");
  CheckPromise(answer.warnings.size() <= limits::kWorkerWarningsMax, "warnings are few");
  for (const CoreInfo& core : answer.cores) {
    CheckPromise(core.nc_idx < limits::kCoresPerWorkerMax, "a core has a number");
    CheckPromise(core.rank_evidence.size() <= limits::kRankEvidencePerStreamMax,
                 "a stream holds the evidence");
    std::set<RankSource> sources;
    for (const RankEvidence& evidence : core.rank_evidence) {
      CheckPromise(evidence.worker_gid >= 0 && evidence.world_size >= 0, "a rank is a number");
      CheckPromise(evidence.world_size == 0 || evidence.worker_gid < evidence.world_size,
                   "a rank is below the size");
      CheckPromise(sources.insert(evidence.source).second, "a source says one thing of a core");
    }
    if (core.rank_evidence.empty()) continue;
    const RankEvidence* const best = BestEvidence(core.rank_evidence);
    CheckPromise(best == &core.rank_evidence.front(), "the best comes first");
  }
}

void CheckPair(const RankFacts& a, const RankFacts& b, const RankResolution& of_a,
               const RankResolution& of_b) {
  if (a.job.empty() || a.job != b.job || !RanTogether(a, b)) return;
  std::map<int64_t, const RankEvidence*> claims;
  for (const CoreInfo& core : of_a.cores) {
    if (!core.rank_evidence.empty()) {
      claims.emplace(core.rank_evidence.front().worker_gid, &core.rank_evidence.front());
    }
  }
  for (const CoreInfo& core : of_b.cores) {
    if (core.rank_evidence.empty()) continue;
    const auto found = claims.find(core.rank_evidence.front().worker_gid);
    if (found == claims.end()) continue;
    CheckPromise(found->second->contradicted || core.rank_evidence.front().contradicted,
                 "two workers claim one rank only with a mark");
  }
  const bool live = !a.ended_ns && !b.ended_ns;
  CheckPromise(!live || !of_a.first_node_core || of_a.first_node_core != of_b.first_node_core,
               "no two processes have one place");
}

void CheckNode(Node node) {
  const std::vector<RankResolution> answers = ResolveNode(node.workers, node.configured);
  const std::vector<RankResolution> again = ResolveNode(node.workers, node.configured);
  CheckPromise(answers.size() == node.workers.size(), "each worker has an answer");
  for (size_t i = 0; i < answers.size(); ++i) {
    CheckPromise(again[i].cores == answers[i].cores && again[i].warnings == answers[i].warnings,
                 "the same facts give the same answer");
    CheckWorker(answers[i]);
    for (size_t j = 0; j < i; ++j) {
      CheckPair(node.workers[i], node.workers[j], answers[i], answers[j]);
    }
    node.workers[i].first_node_core = answers[i].first_node_core;
  }
  const std::vector<RankResolution> later = ResolveNode(node.workers, node.configured);
  for (size_t i = 0; i < answers.size(); ++i) {
    CheckPromise(
        !answers[i].first_node_core || later[i].first_node_core == answers[i].first_node_core,
        "a place is kept");
  }
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  neurontrace::FuzzInput input(data, size);
  neurontrace::Node node;
  node.workers.emplace_back();
  while (!input.empty()) neurontrace::ReadFact(input, node);
  neurontrace::CheckNode(std::move(node));
  return 0;
}
