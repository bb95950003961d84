// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/rank_binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace neurontrace {
namespace {

// Disputes that get a warning of their own; the others are only counted. A capture of thousands of
// mislabelled cores must not bury its other warnings.
constexpr size_t kDisputesNamedMax = 64;

bool IsSameCore(const StreamDescription& a, const StreamDescription& b) {
  return a.identity.worker == b.identity.worker && a.identity.nc_idx == b.identity.nc_idx;
}

// Returns those of `claimants` that overlap in time with a claim of another core. Sweeps once in
// the order of their first events, so that thousands of claims of one gid, as after many restarts,
// take no quadratic time: a claimant leaves `alone` at the first dispute and never returns.
std::vector<size_t> Disputants(const std::vector<StreamDescription>& streams,
                               std::vector<size_t> claimants) {
  std::erase_if(claimants, [&](size_t i) { return streams[i].events == 0; });
  std::sort(claimants.begin(), claimants.end(), [&](size_t a, size_t b) {
    return streams[a].first_timestamp_ns < streams[b].first_timestamp_ns;
  });
  std::vector<size_t> disputants;
  uint64_t dispute_end_ns = 0;  // last timestamp of any disputant
  std::vector<size_t> alone;    // live, and not in any dispute so far
  for (const size_t claimant : claimants) {
    const StreamDescription& stream = streams[claimant];
    std::erase_if(
        alone, [&](size_t i) { return streams[i].last_timestamp_ns < stream.first_timestamp_ns; });
    // It overlaps a disputant that is still alive. Several processes on one core (IsSameCore) are
    // no dispute among themselves, but all of them share one that any of them has.
    bool disputes = !disputants.empty() && dispute_end_ns >= stream.first_timestamp_ns;
    std::erase_if(alone, [&](size_t i) {
      if (IsSameCore(streams[i], stream)) return false;
      disputes = true;
      disputants.push_back(i);
      dispute_end_ns = std::max(dispute_end_ns, streams[i].last_timestamp_ns);
      return true;
    });
    if (!disputes) {
      alone.push_back(claimant);
      continue;
    }
    disputants.push_back(claimant);
    dispute_end_ns = std::max(dispute_end_ns, stream.last_timestamp_ns);
  }
  std::sort(disputants.begin(), disputants.end());
  return disputants;
}

// Returns the workers that have all ranks of a world and name no job: two such workers are two jobs
// that happen to run at once, and equal gids are to be expected.
std::set<WorkerIdentity> WholeWorlds(const std::vector<StreamDescription>& streams) {
  std::map<WorkerIdentity, std::pair<std::set<uint32_t>, int64_t>> worlds;  // cores, world size
  for (const StreamDescription& stream : streams) {
    if (!stream.job.empty() || !stream.identity.has_core()) continue;
    auto& [cores, size] = worlds[stream.identity.worker];
    cores.insert(stream.identity.nc_idx);
    for (const RankEvidence& claim : stream.evidence) size = std::max(size, claim.world_size);
  }
  std::set<WorkerIdentity> whole;
  for (const auto& [worker, world] : worlds) {
    if (world.second == static_cast<int64_t>(world.first.size())) whole.insert(worker);
  }
  return whole;
}

// The text is cut at about a thousand bytes, as a warning is read by people.
std::string NamesOf(const std::vector<size_t>& disputants,
                    const std::vector<StreamDescription>& streams) {
  std::string names;
  for (const size_t i : disputants) {
    if (names.size() >= 1'000) return names + ", …";
    names += (names.empty() ? "" : ", ") + ToString(streams[i].identity);
  }
  return names;
}

}  // namespace

std::vector<RankBinding> BindRanks(const std::vector<StreamDescription>& streams,
                                   std::vector<std::string>& warnings) {
  std::vector<RankBinding> bindings(streams.size());
  std::map<int64_t, std::vector<size_t>> claimants;  // cores alone: files share their worker's gid
  for (size_t i = 0; i < streams.size(); ++i) {
    const RankEvidence* best = BestEvidence(streams[i].evidence);
    if (best == nullptr || best->worker_gid < 0) continue;
    bindings[i].worker_gid = best->worker_gid;
    bindings[i].label = fmt::format("gid{}", best->worker_gid);
    if (streams[i].identity.kind == StreamKind::kNeuronCore)
      claimants[best->worker_gid].push_back(i);
  }
  const std::set<WorkerIdentity> whole_worlds = WholeWorlds(streams);
  size_t disputes = 0;
  for (const auto& [worker_gid, claims] : claimants) {
    if (claims.size() < 2) continue;
    std::map<std::string, std::vector<size_t>> by_job;
    for (const size_t i : claims) {
      if (!whole_worlds.contains(streams[i].identity.worker)) by_job[streams[i].job].push_back(i);
    }
    // Labels are distinguished across jobs, too: in one file two rows "gid0" would be
    // indistinguishable. Only disputes inside a job are worth a warning.
    for (const size_t i : Disputants(streams, claims)) {
      bindings[i].is_disputed = true;
      bindings[i].label = fmt::format("gid{} ({})", worker_gid, ToString(streams[i].identity));
    }
    for (const auto& [job, of_job] : by_job) {
      const std::vector<size_t> disputants = Disputants(streams, of_job);
      if (disputants.empty() || ++disputes > kDisputesNamedMax) continue;
      warnings.push_back(fmt::format(
          "{} cores{} claim worker_gid {} at the same time and are shown separately: {}",
          disputants.size(), job.empty() ? "" : " of job " + job, worker_gid,
          NamesOf(disputants, streams)));
    }
  }
  if (disputes > kDisputesNamedMax) {
    warnings.push_back(fmt::format("{} further worker_gids are claimed by several cores",
                                   disputes - kDisputesNamedMax));
  }
  return bindings;
}

}  // namespace neurontrace
