// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "agent/ranks/rank_resolver.h"

namespace neurontrace {

inline constexpr int64_t kNone = -1;
using Env = std::map<std::string, std::string, std::less<>>;
using GidLists = std::vector<std::vector<int64_t>>;

inline RankFacts Facts(uint32_t cores, Env environment) {
  RankFacts facts;
  facts.visible_cores = cores;
  facts.environment = std::move(environment);
  return facts;
}

inline RankResolution ResolveAlone(const RankFacts& facts, const ConfiguredRanks& configured = {}) {
  return ResolveNode({&facts, 1}, configured).front();
}

// Processes of one job, which started one after the other.
inline std::vector<RankFacts> Node(std::vector<RankFacts> workers, std::string job = "job") {
  for (size_t i = 0; i < workers.size(); ++i) {
    workers[i].job = job;
    workers[i].pid = static_cast<uint32_t>(100 + i);
    workers[i].start_time_ticks = 1'000 + i;
  }
  return workers;
}

// The best rank of each core of each worker.
inline GidLists Gids(const std::vector<RankResolution>& node) {
  std::vector<std::vector<int64_t>> gids;
  for (const RankResolution& worker : node) {
    auto& list = gids.emplace_back();
    for (const CoreInfo& core : worker.cores) {
      const RankEvidence* const best = BestEvidence(core.rank_evidence);
      list.push_back(best == nullptr ? kNone : best->worker_gid);
    }
  }
  return gids;
}

}  // namespace neurontrace
