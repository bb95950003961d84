// SPDX-License-Identifier: Apache-2.0
// Whatever a worker's environment, its communicator calls and its events say of its ranks: the
// answer is the same each time; cores ascend and are no more than a worker may have; each piece of
// evidence is a rank below the job's size where that is known; the best comes first, and each
// source says one thing of a core.
//
// Each step is a byte, and what it needs: which fact, and its value.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "agent/ranks/rank_resolver.h"
#include "base/fuzz_input.h"
#include "trace/limits.h"

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
                                  "SLURM_NNODES"};
constexpr size_t kNamesCount = std::size(kNames);

// Never negative, as what names a rank comes here.
int64_t Rank(FuzzInput& input) { return static_cast<int64_t>(input.Number() & INT64_MAX); }

void TakeFact(FuzzInput& input, RankFacts& facts) {
  const uint8_t what = input.Byte();
  const size_t kind = what % (kNamesCount + 5);
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
      fact.g_device_count = what < 128 && fact.g_device_id < INT64_MAX ? fact.g_device_id + 1 : 0;
      break;
    }
    case 2: {
      const auto core = static_cast<uint32_t>(input.Number());
      facts.event_gids[core] = Rank(input);
      break;
    }
    case 3:
      facts.local_ordinal = static_cast<uint32_t>(input.Number());
      facts.workers_on_node = static_cast<uint32_t>(input.Number());
      break;
    default:
      facts.configured.worker_start_id = input.Byte();
      if (what < 128) facts.configured.workers_per_node = input.Byte();
      facts.configured.worker_count = input.Byte();
      break;
  }
}

void CheckAnswer(const RankFacts& facts, const RankResolution& answer) {
  const RankResolution again = ResolveRanks(facts);
  CheckPromise(again.cores == answer.cores && again.warnings == answer.warnings,
               "the same facts give the same answer");
  CheckPromise(std::ranges::is_sorted(answer.cores, {}, &CoreInfo::nc_idx), "cores ascend");
  CheckPromise(answer.cores.size() <= limits::kCoresPerWorkerMax, "a worker has so many cores");
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

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  neurontrace::FuzzInput input(data, size);
  neurontrace::RankFacts facts;
  while (!input.empty()) neurontrace::TakeFact(input, facts);
  neurontrace::CheckAnswer(facts, neurontrace::ResolveRanks(facts));
  return 0;
}
