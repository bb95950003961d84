// SPDX-License-Identifier: Apache-2.0
#include "aggregator/certificate/missing_ranks.h"

#include <fmt/format.h>

#include "trace/limits.h"

namespace neurontrace {
namespace {

void AddMissing(int64_t first, int64_t last, MissingRanks& missing) {
  if (first > last) return;
  missing.never_seen_count += last - first + 1;
  if (missing.never_seen.size() < limits::kCertificateRankRangesMax) {
    missing.never_seen.push_back({first, last});
  }
}

}  // namespace

void RankCensus::AddParticipant(const std::string& job, const std::vector<RankEvidence>& evidence) {
  const RankEvidence* const best = BestEvidence(evidence);
  if (best == nullptr || best->worker_gid < 0) return;
  Job& about = jobs_[job];
  about.took_part = true;
  about.gids.insert(best->worker_gid);
  for (const RankEvidence& claim : evidence) {
    // The best claim that knows the size.
    if (claim.world_size <= 0) continue;
    about.world_sizes.insert(claim.world_size);
    break;
  }
}

void RankCensus::AddBystander(const std::string& job, const std::vector<RankEvidence>& evidence) {
  const RankEvidence* const best = BestEvidence(evidence);
  if (best != nullptr && best->worker_gid >= 0) jobs_[job].gids.insert(best->worker_gid);
}

std::vector<MissingRanks> RankCensus::Missing() const {
  std::vector<MissingRanks> all;
  for (const auto& [name, job] : jobs_) {
    if (!job.took_part || job.world_sizes.empty()) continue;
    MissingRanks missing;
    missing.job = name;
    missing.world_size = *job.world_sizes.rbegin();
    missing.disputed = job.world_sizes.size() > 1;
    int64_t next = 0;
    for (const int64_t gid : job.gids) {
      if (gid >= missing.world_size) break;
      AddMissing(next, gid - 1, missing);
      next = gid + 1;
      ++missing.seen;
    }
    AddMissing(next, missing.world_size - 1, missing);
    if (missing.never_seen_count > 0) all.push_back(std::move(missing));
  }
  return all;
}

std::string ToString(const std::vector<RankRange>& ranges) {
  std::string text;
  for (const RankRange& range : ranges) {
    if (!text.empty()) text += ", ";
    text += range.first == range.last ? fmt::format("{}", range.first)
                                      : fmt::format("{}-{}", range.first, range.last);
  }
  return text;
}

std::vector<RankRange> RangesOf(const std::vector<int64_t>& ascending) {
  std::vector<RankRange> ranges;
  for (const int64_t gid : ascending) {
    if (!ranges.empty() && ranges.back().last + 1 == gid) {
      ranges.back().last = gid;
    } else {
      ranges.push_back({gid, gid});
    }
  }
  return ranges;
}

}  // namespace neurontrace
