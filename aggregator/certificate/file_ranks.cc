// SPDX-License-Identifier: Apache-2.0
#include "aggregator/certificate/file_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "trace/rank_evidence.h"

namespace neurontrace {
namespace {

// Files that a detail names; the others are counted.
constexpr size_t kFilesNamed = 4;

struct FileClaim {
  const StreamRecord* stream = nullptr;
  const RankEvidence* evidence = nullptr;
};

// Of a file with a time of its own nobody knows when it was: it may overlap with any other.
uint64_t BeginNs(const FileClaim& claim) {
  return claim.stream->clock_domain == ClockDomain::kOwn ? 0 : claim.stream->first_timestamp_ns;
}
uint64_t EndNs(const FileClaim& claim) {
  return claim.stream->clock_domain == ClockDomain::kOwn ? UINT64_MAX
                                                         : claim.stream->last_timestamp_ns;
}

std::vector<FileClaim> ClaimsOf(std::span<const StreamRecord> streams) {
  std::vector<FileClaim> claims;
  for (const StreamRecord& stream : streams) {
    if (stream.identity.kind != StreamKind::kFramework || stream.events == 0) continue;
    const auto claim =
        std::find_if(stream.evidence.begin(), stream.evidence.end(), [](const RankEvidence& one) {
          return one.source == RankSource::kFrameworkFile && one.worker_gid >= 0;
        });
    if (claim != stream.evidence.end()) claims.push_back({&stream, &*claim});
  }
  std::sort(claims.begin(), claims.end(), [](const FileClaim& a, const FileClaim& b) {
    return std::pair(BeginNs(a), a.stream->number) < std::pair(BeginNs(b), b.stream->number);
  });
  return claims;
}

// Of `claims` in the order of their begin, those that overlap in time with another one.
std::vector<FileClaim> Overlapping(const std::vector<FileClaim>& claims) {
  std::vector<FileClaim> overlapping;
  FileClaim latest;  // of those so far the one that ends last
  bool is_listed = false;
  for (const FileClaim& claim : claims) {
    if (latest.stream != nullptr && BeginNs(claim) <= EndNs(latest)) {
      if (!is_listed) overlapping.push_back(latest);
      overlapping.push_back(claim);
      is_listed = true;
    } else {
      is_listed = false;
    }
    if (latest.stream == nullptr || EndNs(claim) > EndNs(latest)) {
      // It stands in the list if it overlaps with what was before.
      latest = claim;
    }
  }
  return overlapping;
}

std::string Names(const std::vector<FileClaim>& claims, bool with_world_size) {
  std::string names;
  for (size_t i = 0; i < std::min(claims.size(), kFilesNamed); ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : ", ", ToString(claims[i].stream->identity));
    if (with_world_size) names += fmt::format(" ({})", claims[i].evidence->world_size);
  }
  if (claims.size() > kFilesNamed)
    names += fmt::format(" and {} more", claims.size() - kFilesNamed);
  return names;
}

void AddContradiction(const FileClaim& first, const std::string& detail,
                      std::vector<WorkerCertificate>& workers) {
  const std::string& instance = first.stream->identity.worker.instance_id;
  const auto worker =
      std::find_if(workers.begin(), workers.end(), [&](const WorkerCertificate& one) {
        return one.framework && one.worker.instance_id == instance;
      });
  if (worker == workers.end()) return;
  AddRemark(RemarkKind::kRankContradiction, 1, detail, worker->remarks);
}

void CompareWorldSizes(const std::vector<FileClaim>& claims,
                       std::vector<WorkerCertificate>& workers) {
  std::vector<FileClaim> with_size;
  for (const FileClaim& claim : claims) {
    if (claim.evidence->world_size > 0) with_size.push_back(claim);
  }
  std::map<int64_t, FileClaim> by_size;  // the first file of each
  for (const FileClaim& claim : Overlapping(with_size)) {
    by_size.try_emplace(claim.evidence->world_size, claim);
  }
  if (by_size.size() < 2) return;
  std::vector<FileClaim> different;
  for (const auto& [size, claim] : by_size) different.push_back(claim);
  AddContradiction(different.front(), "files name different world sizes: " + Names(different, true),
                   workers);
}

}  // namespace

void CompareFileRanks(std::span<const StreamRecord> streams,
                      std::vector<WorkerCertificate>& workers) {
  const std::vector<FileClaim> claims = ClaimsOf(streams);
  std::map<int64_t, std::vector<FileClaim>> by_rank;
  for (const FileClaim& claim : claims) by_rank[claim.evidence->worker_gid].push_back(claim);
  for (const auto& [rank, of_rank] : by_rank) {
    const std::vector<FileClaim> overlapping = Overlapping(of_rank);
    if (overlapping.empty()) continue;
    AddContradiction(overlapping.front(),
                     fmt::format("rank {} is claimed by {} files at the same time: {}", rank,
                                 overlapping.size(), Names(overlapping, false)),
                     workers);
  }
  CompareWorldSizes(claims, workers);
}

}  // namespace neurontrace
