// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/rank_conflicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "trace/limits.h"

namespace neurontrace {

std::vector<std::string> FindRankConflicts(std::span<const RankClaim> claims) {
  std::map<std::pair<std::string_view, int64_t>, std::vector<const RankClaim*>> by_rank;
  for (const RankClaim& claim : claims) {
    if (claim.worker_gid < 0 || claim.stream.kind != StreamKind::kNeuronCore) continue;
    by_rank[{claim.job, claim.worker_gid}].push_back(&claim);
  }
  std::vector<std::string> warnings;
  for (auto& [rank, same] : by_rank) {
    if (warnings.size() >= limits::kCaptureWarningsMax) break;
    // By begin; then the one that reaches furthest tells whether the next one overlaps.
    std::sort(same.begin(), same.end(), [](const RankClaim* a, const RankClaim* b) {
      return std::tie(a->first_timestamp_ns, a->stream) <
             std::tie(b->first_timestamp_ns, b->stream);
    });
    const RankClaim* furthest = same.front();
    for (size_t i = 1; i < same.size(); ++i) {
      if (same[i]->first_timestamp_ns <= furthest->last_timestamp_ns) {
        warnings.push_back(fmt::format(
            "worker_gid {}{} is claimed by two cores at once, {} and {}: both are kept apart",
            rank.second, rank.first.empty() ? "" : fmt::format(" of job {}", rank.first),
            ToString(furthest->stream), ToString(same[i]->stream)));
        break;
      }
      if (same[i]->last_timestamp_ns > furthest->last_timestamp_ns) furthest = same[i];
    }
  }
  return warnings;
}

}  // namespace neurontrace
