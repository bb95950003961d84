// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/ranks/environment_reader.h"
#include "lib/trace/rank_evidence.h"
#include "lib/trace/rank_facts.h"

namespace neurontrace {

// What one source says of one process. Later, once the node's other workers agreed, of its cores.
struct RankClaim {
  std::string said;                // the variables and their values: "RANK=3 of 8"
  std::string variable;            // the one that has the index: "RANK"
  std::string world;               // claims of one world count in one numbering
  size_t world_id = 0;             // the same, for the resolver
  int64_t index = 0;               // of this process, or of its first core
  int64_t size = 0;                // processes, or cores, in the world; 0: not known
  bool is_size_ambiguous = false;  // said, and it may be of processes or of cores
  bool counts_cores = false;
  int64_t processes = 0;      // in the world; 0: not known
  bool equal_cores = false;   // the launcher said that all processes have as many cores
  std::vector<int64_t> gids;  // by nc_idx, as soon as they are known; -1: none
  int64_t world_cores = 0;    // 0: not known
  std::vector<int64_t> list;  // of NEURON_PJRT_PROCESSES_NUM_DEVICES
  size_t list_id = 0;         // the same, for the resolver
  // RANK less LOCAL_RANK under torchrun: the same for all workers of one torchrun, `launcher`.
  std::optional<int64_t> first_of_launcher;
  std::string launcher;
  std::string guess;  // what it rests on without anybody having said so; empty: nothing
  std::string doubt;  // what contradicts it; empty: nothing
};

// A claim that is not made, and why.
struct RankRefusal {
  std::string reason;
  // The variable is expected to be there and not to count, as SLURM_PROCID of the task that started
  // torchrun. Told only where the worker's ranks are not known by anything else.
  bool is_expected = false;
};

struct EnvironmentClaims {
  std::map<RankSource, RankClaim> claims;
  std::vector<RankRefusal> refusals;
  std::string unfit_list_world;  // where NEURON_PJRT_PROCESSES_NUM_DEVICES contradicts the cores
};

// Reads what a worker's launchers say of it: PJRT, NEURON_GLOBAL_DEVICE_ID, torchrun and the
// Kubernetes operators, MPI and Slurm. `cores` is how many it has, at least 1; `node_workers`, how
// many workers its node has in its job, itself included. Malformed variables add to `warnings`.
EnvironmentClaims ReadEnvironmentClaims(const RankFacts& facts, int64_t cores, int64_t node_workers,
                                        std::vector<std::string>& warnings);

// Names what ranks of a worker's environment count within: workers with the same RANK and the same
// world contradict each other. `address` is where the world meets; without one, or where it is this
// host, only processes of one container share a world.
std::string WorldOf(const RankFacts& facts, std::string_view address, std::string_view name);

// The user and the job. Workers that name no job are told apart by where their worlds meet.
std::string JobOf(const RankFacts& facts);
// The container, or the pod, or nothing.
std::string ContainerOf(const RankFacts& facts);

}  // namespace neurontrace
