// SPDX-License-Identifier: Apache-2.0
#include "agent/ranks/node_cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "agent/ranks/environment_claims.h"
#include "agent/ranks/environment_reader.h"

namespace neurontrace {
namespace {

// More than any instance has; bounds the search for gaps.
constexpr int64_t kNodeCoresMax = 4'096;
// The Neuron runtime's list of the node's cores that the process may use.
constexpr char kVisibleCores[] = "NEURON_RT_VISIBLE_CORES";

// Returns `count` numbers from `first` on.
std::vector<int64_t> Consecutive(int64_t first, int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

// Two lists that share a core number start from different origins, as in containers that each count
// from 0, or one of them is stale. Neither is used. This is step 1: it numbers cores by each
// worker's own list, if that is as long as the worker has cores.
void UseCoreLists(std::span<NodeCoresWorker> workers) {
  std::vector<std::vector<int64_t>> lists;
  std::map<int64_t, std::vector<size_t>> users;  // of each core number
  for (size_t i = 0; i < workers.size(); ++i) {
    NodeCoresWorker& worker = workers[i];
    const EnvironmentReader environment(worker.facts->environment, worker.found.refusals);
    lists.push_back(environment.CoreList(kVisibleCores));
    if (lists[i].empty()) continue;
    if (static_cast<int64_t>(lists[i].size()) != worker.cores) {
      worker.found.refusals.push_back(
          fmt::format("{} is not used for ranks: it lists {} cores, but the process has {}",
                      kVisibleCores, lists[i].size(), worker.cores));
      lists[i].clear();
      continue;
    }
    for (const int64_t core : lists[i]) users[core].push_back(i);
  }
  std::map<size_t, int64_t> shared;  // the first core that the worker shares
  for (const auto& [core, list] : users) {
    for (size_t a = 0; a < list.size(); ++a) {
      // The bound keeps the comparison linear if thousands of dead workers listed the same core.
      for (size_t b = a + 1; b < list.size() && b < a + 64; ++b) {
        if (!RanTogether(*workers[list[a]].facts, *workers[list[b]].facts)) continue;
        shared.try_emplace(list[a], core);
        shared.try_emplace(list[b], core);
      }
    }
  }
  for (size_t i = 0; i < workers.size(); ++i) {
    if (lists[i].empty()) continue;
    if (const auto found = shared.find(i); found != shared.end()) {
      workers[i].found.refusals.push_back(
          fmt::format("{} is not used for ranks: several workers of this node list core {}",
                      kVisibleCores, found->second));
      continue;
    }
    workers[i].found.numbers = std::move(lists[i]);
    workers[i].found.how = kVisibleCores;
  }
}

// A worker's number among the processes of its node, with the variable that has it.
struct LocalRank {
  std::string name;
  int64_t rank;
};

// Returns the local rank from the first variable that is set; nothing if none may be believed.
std::optional<LocalRank> FindLocalRank(NodeCoresWorker& worker) {
  const EnvironmentReader environment(worker.facts->environment, worker.found.refusals);
  // These are set for each process; Slurm's and PMI's only count if the worker is the launcher's
  // own task.
  for (const char* name : {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"}) {
    if (const auto rank = environment.Number(name)) return LocalRank{name, *rank};
  }
  if (!worker.has_task) return std::nullopt;
  for (const char* name : {"PMI_LOCAL_RANK", "SLURM_LOCALID"}) {
    if (const auto rank = environment.Number(name)) return LocalRank{name, *rank};
  }
  return std::nullopt;
}

// Numbers the cores of the worker with local rank `local`: from the sum of the cores of all lower
// ranks if all are known, else from its own number of cores times the rank. In the latter case an
// earlier place wins if it differs: an agent that restarted does not know workers that died before.
void UseLocalRank(const LocalRank& local, const std::map<int64_t, int64_t>& cores_of,
                  NodeCoresWorker& worker) {
  // Sums over the workers with lower ranks, and whether all known workers are alike.
  int64_t before = 0;
  int64_t seen = 0;
  bool is_equal = true;
  for (const auto& [rank, cores] : cores_of) {
    is_equal = is_equal && cores == worker.cores;
    if (rank >= local.rank) continue;
    before += cores;
    ++seen;
  }
  // All lower ranks are known, so their cores can be added up.
  const bool is_sum = seen == local.rank;
  if (!is_sum && !is_equal) {
    worker.found.refusals.push_back(
        fmt::format("{} is not used for ranks: the workers of this node have different core "
                    "counts, and some with lower local ranks are unknown",
                    local.name));
    return;
  }
  if (!is_sum) {
    before = local.rank * worker.cores;
    const std::optional<uint32_t> had = worker.facts->first_node_core;
    if (had && *had != before) {
      worker.found.refusals.push_back(
          fmt::format("{} is not used for ranks: some workers of this node with lower local ranks "
                      "are unknown, and the cores of this worker had other numbers before",
                      local.name));
      return;
    }
  }
  if (before + worker.cores > kNodeCoresMax) return;
  worker.found.numbers = Consecutive(before, worker.cores);
  worker.found.how = fmt::format("{}={}", local.name, local.rank);
  if (!is_sum && worker.cores > 1) {
    worker.found.guess = "the processes with lower local ranks have the same number of cores";
  }
}

// Step 2: numbers cores by local ranks, for workers that have no numbers yet. Only workers that ran
// at the same time are compared, since a later one may reuse a rank.
void UseLocalRanks(std::span<NodeCoresWorker> workers) {
  std::vector<std::optional<LocalRank>> local(workers.size());
  for (size_t i = 0; i < workers.size(); ++i) local[i] = FindLocalRank(workers[i]);
  for (size_t i = 0; i < workers.size(); ++i) {
    if (!local[i] || !workers[i].found.numbers.empty()) continue;
    std::map<int64_t, int64_t> cores_of;  // of each local rank at the worker's time
    bool shared = false;
    for (size_t j = 0; j < workers.size(); ++j) {
      if (!local[j] || !RanTogether(*workers[i].facts, *workers[j].facts)) continue;
      shared = shared || (i != j && local[j]->rank == local[i]->rank);
      cores_of[local[j]->rank] = workers[j].cores;
    }
    if (shared) {
      workers[i].found.refusals.push_back(
          fmt::format("{}={} is not used for ranks: several workers of this node have it",
                      local[i]->name, local[i]->rank));
    } else {
      UseLocalRank(*local[i], cores_of, workers[i]);
    }
  }
}

// Returns the lowest number from which `cores` consecutive numbers are free. `taken` maps the first
// number of each range to its length. Nothing if kNodeCoresMax is exceeded.
std::optional<int64_t> FindGap(const std::map<int64_t, int64_t>& taken, int64_t cores) {
  int64_t at = 0;
  for (const auto& [first, count] : taken) {
    if (first - at >= cores) break;
    at = std::max(at, first + count);
  }
  if (at + cores > kNodeCoresMax) return std::nullopt;
  return at;
}

// `taken` has disjoint ranges by their first number, so only the two neighbours can overlap.
bool IsFree(const std::map<int64_t, int64_t>& taken, int64_t first, int64_t cores) {
  const auto next = taken.lower_bound(first);
  if (next != taken.end() && next->first < first + cores) return false;
  return next == taken.begin() || std::prev(next)->first + std::prev(next)->second <= first;
}

// Returns the place that a worker should have: where its local rank puts it, else the one that it
// had. A core list may have holes and stays true after a restart, so it decides no place.
std::optional<uint32_t> RequestedPlace(const NodeCoresWorker& worker) {
  const NodeCores& found = worker.found;
  if (found.numbers.empty() || found.how == kVisibleCores) return worker.facts->first_node_core;
  return static_cast<uint32_t>(found.numbers.front());
}

// Gives every worker a place, needed or not: a variable may turn out to be wrong later, and a place
// that is only then assigned would not be the order of start. This is the first part of step 3: it
// assigns the places that stay, then those that variables demand, those that workers had, and gaps
// for the rest.
void AssignPlaces(std::span<NodeCoresWorker> workers) {
  std::vector<NodeCoresWorker*> oldest_first;
  for (NodeCoresWorker& worker : workers) {
    if (worker.facts->ended_ns) {
      worker.place = worker.facts->first_node_core;  // free for others, and still its own
    } else {
      oldest_first.push_back(&worker);
    }
  }
  std::sort(oldest_first.begin(), oldest_first.end(), [](const auto* a, const auto* b) {
    return std::tie(a->facts->start_time_ticks, a->facts->pid) <
           std::tie(b->facts->start_time_ticks, b->facts->pid);
  });
  // Disjoint ranges of the node's cores that living workers have.
  std::map<int64_t, int64_t> taken;  // first core, count
  const auto take = [&taken](NodeCoresWorker& worker, std::optional<uint32_t> first) {
    if (worker.place || !first || *first + worker.cores > kNodeCoresMax) return;
    if (!IsFree(taken, *first, worker.cores)) return;
    worker.place = first;
    taken.emplace(*first, worker.cores);
  };
  // Places that stay come first, so that no living worker's place is taken by another's.
  for (NodeCoresWorker* const worker : oldest_first) {
    const std::optional<uint32_t> had = worker->facts->first_node_core;
    if (had == RequestedPlace(*worker)) take(*worker, had);
  }
  for (NodeCoresWorker* const worker : oldest_first) take(*worker, RequestedPlace(*worker));
  for (NodeCoresWorker* const worker : oldest_first) take(*worker, worker->facts->first_node_core);
  for (NodeCoresWorker* const worker : oldest_first) {
    if (worker->place || !worker->facts->may_be_placed) continue;
    const std::optional<int64_t> gap = FindGap(taken, worker->cores);
    if (!gap) continue;
    worker->place = static_cast<uint32_t>(*gap);
    taken.emplace(*gap, worker->cores);
  }
}

// Step 3, second part: numbers the cores of workers that have nothing better by their place.
void UsePlaces(std::span<NodeCoresWorker> workers) {
  for (NodeCoresWorker& worker : workers) {
    if (!worker.found.numbers.empty()) continue;
    if (!worker.place) {
      worker.found.refusals.push_back(
          "the position of this worker among the workers of the node is not known yet");
      continue;
    }
    worker.found.numbers = Consecutive(*worker.place, worker.cores);
    worker.found.how = "order of start";
    worker.found.guess = "the processes use the node's cores in the order they started";
  }
}

}  // namespace

void NumberNodeCores(std::span<NodeCoresWorker> workers) {
  UseCoreLists(workers);
  UseLocalRanks(workers);
  AssignPlaces(workers);
  UsePlaces(workers);
}

}  // namespace neurontrace
