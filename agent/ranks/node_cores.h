// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/trace/rank_facts.h"

namespace neurontrace {

// The numbers of a process's cores among all logical cores of the node.
struct NodeCores {
  std::vector<int64_t> numbers;  // by nc_idx; empty: not known
  std::string how;               // the variable that said so, or words
  std::string guess;             // what they rest on without anybody having said so; empty: nothing
  std::vector<std::string> refusals;  // of evidence that was not used, and why
};

// One worker of the job, with the result.
struct NodeCoresWorker {
  const RankFacts* facts = nullptr;
  int64_t cores = 0;
  bool has_task = false;  // Slurm's or MPI's variables are its own, so its local rank is too
  NodeCores found = {};
  std::optional<uint32_t> place = {};
};

// Numbers the cores of the workers of one job on this node, by the first of these that applies to a
// worker (docs/user/ranks.md, "Configured ranks"):
//
// 1. NEURON_RT_VISIBLE_CORES, unless another worker lists one of the same cores.
// 2. The local rank times the cores of a process, unless two workers have the same one.
// 3. The place among the running processes in the order of their start, which is a guess.
//
// A process keeps its place as long as it lives; if two claim the same one, the older keeps it.
// Never fails: a worker without numbers has the reasons in `refusals`. Pure.
void NumberNodeCores(std::span<NodeCoresWorker> workers);

}  // namespace neurontrace
