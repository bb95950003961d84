// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/trace/rank_facts.h"

namespace neurontrace {

// The numbers of a process's cores among the cores of the node.
struct NodeCores {
  std::vector<int64_t> numbers;  // by nc_idx; empty: not known
  std::string how;               // the variable that said so, or words
  std::string guess;             // what they rest on without anybody having said so; empty: nothing
  std::vector<std::string> refusals;  // of evidence that was not used, and why
};

// One worker whose node's cores are numbered.
struct NodeCoresWorker {
  const RankFacts* facts = nullptr;
  int64_t cores = 0;
  bool has_task = false;  // Slurm's or MPI's variables are its own, so its local rank is too
  NodeCores found = {};
  std::optional<uint32_t> place = {};
};

// Numbers the cores of the workers of one job on this node. Best first: NEURON_RT_VISIBLE_CORES,
// which lists them unless another worker lists one of them too; the local rank, times the cores of
// a process, unless two workers have the same one; the place among the processes that run, in the
// order in which they started, which is a guess. A place stays the same as long as its process
// lives; of two workers that say they have the same one, the older keeps it.
void NumberNodeCores(std::span<NodeCoresWorker> workers);

}  // namespace neurontrace
