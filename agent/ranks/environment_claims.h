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

// What one launcher states about the rank of one process, read from the environment. The resolver
// then adds the ranks of the process's cores, once the node's other workers have been compared. A
// plain value; negative numbers mean "none". Made by ReadEnvironmentClaims; the resolver fills
// `world_id`, `list_id`, `gids` and `world_cores`.
struct RankClaim {
  std::string text;                // the variables and their values: "RANK=3 of 8"
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
  // RANK minus LOCAL_RANK under torchrun: equal for all workers that one torchrun, `launcher`,
  // started. A stale RANK breaks this.
  std::optional<int64_t> first_of_launcher;
  std::string launcher;
  std::string guess;  // what it rests on without anybody having said so; empty: nothing
  std::string doubt;  // what contradicts it; empty: nothing
};

// A statement that is not believed, with the reason for people.
struct RankRefusal {
  std::string reason;
  // The variable is normally present without a meaning for this process, as SLURM_PROCID of the
  // task that started torchrun is. Reported only if nothing else gives the worker's ranks.
  bool is_expected = false;
};

// Everything that a worker's environment states about its ranks, by source, best first.
struct EnvironmentClaims {
  std::map<RankSource, RankClaim> claims;
  std::vector<RankRefusal> refusals;
  std::string unfit_list_world;  // where NEURON_PJRT_PROCESSES_NUM_DEVICES contradicts the cores
};

// Reads the variables of a worker's launchers: PJRT, NEURON_GLOBAL_DEVICE_ID, torchrun and the
// Kubernetes operators, MPI and Slurm. docs/user/ranks.md lists them with their meaning. `cores` is
// the number of its logical cores, at least 1; `node_workers` the number of workers of its job on
// this node, itself included. Never fails: malformed variables are ignored and added to `warnings`.
// Pure.
EnvironmentClaims ReadEnvironmentClaims(const RankFacts& facts, int64_t cores, int64_t node_workers,
                                        std::vector<std::string>& warnings);

// Returns a key for the world that a rank counts within: two workers with the same RANK and the
// same key contradict each other. `address` is where the world's processes meet; if it is empty or
// this host, only processes of one container share a world.
std::string WorldOf(const RankFacts& facts, std::string_view address, std::string_view name);

// Returns a key for the worker's user and job. Workers that name no job are told apart by
// MASTER_ADDR and MASTER_PORT.
std::string JobOf(const RankFacts& facts);
// Returns a key for the worker's container, by id or else by the pod that its environment names.
std::string ContainerOf(const RankFacts& facts);

}  // namespace neurontrace
