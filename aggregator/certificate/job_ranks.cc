// SPDX-License-Identifier: Apache-2.0
#include "aggregator/certificate/job_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "lib/trace/limits.h"
#include "lib/trace/rank_limits.h"

namespace neurontrace {
namespace {

// Jobs are found by union-find over names: job keys and the roots of communicators are nodes, and a
// worker that has both joins them. Every core then belongs to the job of its worker's node. Within
// a job, ranks are compared core by core: which are missing, which are beyond the world, and which
// are claimed by several cores at the same time. All of it is computed at once, in n log n time,
// from what was added. job_ranks_test.cc has the cases.

// Such an address is the same on every node and joins only workers of one instance.
bool IsLoopbackRoot(std::string_view root) {
  return root.starts_with("127.") || root.starts_with("localhost:") || root.starts_with("[::1]") ||
         root.starts_with("::1") || root.starts_with("0.0.0.0");
}

// Adds the ranks from `first` to `last` as missing; an empty range adds nothing. All ranks are
// counted, while only the first ranges are kept: a sparse world of thousands would fill the
// certificate.
void AddMissingRange(int64_t first, int64_t last, JobRanks& job) {
  if (first > last) return;
  job.never_seen_count += last - first + 1;
  if (job.never_seen.size() < limits::kCertificateRankRangesMax) {
    job.never_seen.push_back({first, last});
  }
}

// Returns whether both are the same logical core of one worker, as after a change of agents.
bool AreOneCore(const RankedCore& a, const RankedCore& b) {
  return a.stream.worker == b.stream.worker && a.stream.nc_idx == b.stream.nc_idx;
}

// Returns the claim of a core, with its job key for the case that it differs within the job.
RankClaimant ClaimantOf(const RankedCore& core, const std::string& job,
                        const RankEvidence& evidence) {
  return {
      .worker = core.stream.worker, .nc_idx = core.stream.nc_idx, .job = job, .evidence = evidence};
}

// "i-a pid 1 nc 0 (RANK=3), i-b pid 2 nc 1 of job k (RANK=3) and 14 more". `count` is the number of
// claimants, of whom only some are listed.
std::string Describe(const std::vector<RankClaimant>& claimants, uint64_t count,
                     const std::string& job) {
  std::string text;
  for (const RankClaimant& claimant : claimants) {
    text += fmt::format("{}{} pid {} nc {}", text.empty() ? "" : ", ", claimant.worker.instance_id,
                        claimant.worker.pid, claimant.nc_idx);
    if (claimant.job != job && !claimant.job.empty()) text += " of job " + claimant.job;
    if (!claimant.evidence.detail.empty()) text += fmt::format(" ({})", claimant.evidence.detail);
  }
  return count > claimants.size() ? fmt::format("{} and {} more", text, count - claimants.size())
                                  : text;
}

}  // namespace

// One job while its cores are compared. It points into cores_ of the census.
struct JobRankCensus::Job {
  using Claim = std::pair<const RankedCore*, const std::string*>;  // with the job key of its worker

  JobRanks ranks;
  std::set<std::string> names;
  std::set<WorkerIdentity> workers;
  std::map<int64_t, WorldSizeClaim> world_sizes;
  std::set<int64_t> gids;
  std::map<int64_t, std::vector<Claim>> claims;

  // With `compared` false the core is counted, but its rank is that of another job.
  void Add(const RankedCore& core, const std::string& job_key, bool compared);
  // Fills in what is seen, missing and beyond the world. Called after the last Add.
  void CountRanks();
  // Finds ranks that several cores claim at the same time.
  void FindDisputes();
  // Counts a dispute, and keeps it up to a limit.
  void AddDispute(int64_t gid, std::vector<Claim> claimants);
};

void JobRankCensus::Job::Add(const RankedCore& core, const std::string& job_key, bool compared) {
  ++ranks.cores;
  ranks.cores_forgotten += core.is_forgotten ? 1 : 0;
  workers.insert(core.stream.worker);
  const RankEvidence* const best = BestEvidence(core.evidence);
  if (best == nullptr || best->worker_gid < 0) {
    ++ranks.cores_without_rank;
    return;
  }
  ranks.cores_guessed += best->guessed ? 1 : 0;
  ranks.cores_contradicted += best->contradicted ? 1 : 0;
  if (!compared) return;
  gids.insert(best->worker_gid);
  claims[best->worker_gid].emplace_back(&core, &job_key);
  // Evidence is ordered best first: this is the best claim that knows the size, which need not be
  // the one that knows the rank best.
  const auto sized = std::find_if(core.evidence.begin(), core.evidence.end(),
                                  [](const RankEvidence& claim) { return claim.world_size > 0; });
  if (sized == core.evidence.end()) return;
  WorldSizeClaim& claim = world_sizes[sized->world_size];
  claim.world_size = sized->world_size;
  ++claim.cores;
  const bool is_named =
      std::any_of(claim.claimants.begin(), claim.claimants.end(),
                  [&core](const auto& other) { return other.worker == core.stream.worker; });
  if (!is_named && claim.claimants.size() < limits::kRankClaimantsNamedMax) {
    claim.claimants.push_back(ClaimantOf(core, job_key, *sized));
  }
}

// Goes through the ranks in ascending order, so that gaps between them are the missing ones.
void JobRankCensus::Job::CountRanks() {
  ranks.workers = workers.size();
  for (const auto& [size, claim] : world_sizes) {
    // Ascending; with more than the limit the conflict is certain anyway.
    if (ranks.world_sizes.size() < limits::kWorldSizesNamedMax) ranks.world_sizes.push_back(claim);
  }
  if (world_sizes.empty()) {
    ranks.ranks_seen = static_cast<int64_t>(gids.size());
    return;
  }
  // With several claims the largest: a smaller one would call ranks of the others impossible.
  ranks.world_size = world_sizes.rbegin()->first;
  int64_t next = 0;
  for (const int64_t gid : gids) {
    if (gid >= ranks.world_size) {
      ++ranks.ranks_beyond_world;
      continue;
    }
    AddMissingRange(next, gid - 1, ranks);
    next = gid + 1;
    ++ranks.ranks_seen;
  }
  AddMissingRange(next, ranks.world_size - 1, ranks);
}

void JobRankCensus::Job::AddDispute(int64_t gid, std::vector<Claim> claimants) {
  ++ranks.disputes_count;
  if (ranks.disputes.size() >= limits::kRankDisputesNamedMax) return;
  // By identity, so that the same capture always names the same claimants.
  std::sort(claimants.begin(), claimants.end(),
            [](const Claim& a, const Claim& b) { return a.first->stream < b.first->stream; });
  RankDispute& dispute = ranks.disputes.emplace_back();
  dispute.worker_gid = gid;
  dispute.claimants_count = claimants.size();
  for (const auto& [core, job_key] : claimants) {
    if (dispute.claimants.size() == limits::kRankClaimantsNamedMax) break;
    dispute.claimants.push_back(ClaimantOf(*core, *job_key, *BestEvidence(core->evidence)));
  }
}

// A rank may pass from one core to another: only claims that overlap in time are disputed.
void JobRankCensus::Job::FindDisputes() {
  for (auto& [gid, same] : claims) {
    // A core without events was at no time: it cannot claim a rank at the same time as another one.
    std::erase_if(same,
                  [](const Claim& claim) { return claim.first->first_ns > claim.first->last_ns; });
    if (same.size() < 2) continue;
    std::stable_sort(same.begin(), same.end(), [](const Claim& a, const Claim& b) {
      return a.first->first_ns < b.first->first_ns;
    });
    // Claims that overlap form chains, each overlapping one before it. A chain whose claims all
    // belong to one core is no dispute.
    std::vector<Claim> disputants;
    std::vector<Claim> chain;
    uint64_t reaches_ns = 0;
    const auto close_chain = [&] {
      const bool is_dispute = std::any_of(chain.begin(), chain.end(), [&](const Claim& claim) {
        return !AreOneCore(*claim.first, *chain.front().first);
      });
      if (is_dispute) disputants.insert(disputants.end(), chain.begin(), chain.end());
      chain.clear();
    };
    for (const Claim& claim : same) {
      if (!chain.empty() && claim.first->first_ns > reaches_ns) close_chain();
      reaches_ns =
          chain.empty() ? claim.first->last_ns : std::max(reaches_ns, claim.first->last_ns);
      chain.push_back(claim);
    }
    close_chain();
    if (!disputants.empty()) AddDispute(gid, std::move(disputants));
  }
}

// Without path compression: chains are as short as a job has names.
std::string JobRankCensus::Root(std::string node) const {
  for (auto it = parents_.find(node); it != parents_.end() && it->second != node;
       it = parents_.find(node)) {
    node = it->second;
  }
  return node;
}

// Makes the root of `a` the root of both.
void JobRankCensus::Join(const std::string& a, const std::string& b) {
  const std::string root_a = Root(a);
  const std::string root_b = Root(b);
  parents_.try_emplace(root_a, root_a);
  parents_[root_b] = root_a;
}

// A worker keeps the node that it got first, from AddWorker or from the job key of its stream.
std::string JobRankCensus::NodeOf(const WorkerIdentity& worker, const std::string& job) {
  const auto known = nodes_.find(worker);
  if (known != nodes_.end()) return known->second;
  // Prefixed, so that a job key cannot be taken for the root of a communicator.
  std::string node = "job " + job;
  if (IsLoopbackRoot(job)) node += " on " + worker.instance_id;
  names_.try_emplace(node, job);
  parents_.try_emplace(node, node);
  nodes_.emplace(worker, node);
  return node;
}

// Facts are pairs of a key and a value: "comm" is the root of a communicator, "master" the address
// of MASTER_ADDR and MASTER_PORT.
void JobRankCensus::AddWorker(const WorkerInfo& worker) {
  const auto find = [&worker](std::string_view key) {
    return std::find_if(worker.job_facts.begin(), worker.job_facts.end(),
                        [key](const auto& fact) { return fact.key == key && !fact.value.empty(); });
  };
  auto root = find("comm");
  // The address at which its processes meet identifies a job only if nothing else does: it may be
  // reused by the next job.
  if (root == worker.job_facts.end() && worker.job.empty()) root = find("master");
  const bool has_root = root != worker.job_facts.end();
  std::string communicator;
  if (has_root) {
    communicator = fmt::format("{} {}", root->key, root->value);
    if (IsLoopbackRoot(root->value)) communicator += " on " + worker.identity.instance_id;
  }
  // A worker without a job key belongs to its communicator, rather than to all others without one.
  if (has_root && worker.job.empty()) {
    nodes_.try_emplace(worker.identity, communicator);
    names_.try_emplace(communicator, "");
    parents_.try_emplace(communicator, communicator);
    return;
  }
  const std::string node = NodeOf(worker.identity, worker.job);
  if (has_root) Join(node, communicator);
}

void JobRankCensus::AddCore(const std::string& job, RankedCore core) {
  NodeOf(core.stream.worker, job);
  cores_.emplace_back(job, std::move(core));
}

void JobRankCensus::AddAccount(const WorkerIdentity& worker, const std::string& job,
                               const EventAccount& account) {
  accounts_.emplace_back(NodeOf(worker, job), account);
}

// A worker without a rank can fill no gap.
void JobRankCensus::AddNonParticipant(const WorkerInfo& worker,
                                      const std::vector<RankEvidence>& evidence) {
  const RankEvidence* const best = BestEvidence(evidence);
  if (best == nullptr || best->worker_gid < 0) return;
  AddWorker(worker);
  non_participant_gids_.emplace_back(NodeOf(worker.identity, worker.job), best->worker_gid);
}

// Workers without a job may each be a world of their own; then their ranks are not compared.
std::set<WorkerIdentity> JobRankCensus::WholeWorlds() const {
  struct World {
    int64_t cores = 0;
    int64_t size = 0;
  };
  // Roots of jobs with a name: these need no guess about whole worlds.
  std::set<std::string> named;  // roots
  for (const auto& [node, name] : names_) {
    if (!name.empty()) named.insert(Root(node));
  }
  std::map<std::string, std::map<WorkerIdentity, World>> jobs;  // by root
  for (const auto& [job_key, core] : cores_) {
    const std::string root = Root(nodes_.at(core.stream.worker));
    if (named.contains(root)) continue;
    World& world = jobs[root][core.stream.worker];
    ++world.cores;
    for (const RankEvidence& claim : core.evidence) {
      world.size = std::max(world.size, claim.world_size);
    }
  }
  std::set<WorkerIdentity> whole;
  for (const auto& [root, worlds] : jobs) {
    for (const auto& [worker, world] : worlds) {
      // A single worker needs no exemption, and its ranks should be compared with each other.
      if (worlds.size() > 1 && world.size == world.cores) whole.insert(worker);
    }
  }
  return whole;
}

// The steps depend on each other: cores make the jobs, and accounts, non-participants and names are
// added to those.
std::vector<JobRanks> JobRankCensus::Jobs() const {
  std::map<std::string, Job> jobs;  // by root
  const std::set<WorkerIdentity> whole_worlds = WholeWorlds();
  for (const auto& [job_key, core] : cores_) {
    const WorkerIdentity& worker = core.stream.worker;
    jobs[Root(nodes_.at(worker))].Add(core, job_key, !whole_worlds.contains(worker));
  }
  for (const auto& [node, account] : accounts_) jobs[Root(node)].ranks.account.Add(account);
  // Non-participants count only for jobs that take part; they make no job of their own.
  for (const auto& [node, gid] : non_participant_gids_) {
    const auto job = jobs.find(Root(node));
    if (job != jobs.end()) job->second.gids.insert(gid);
  }
  for (const auto& [node, name] : names_) {
    const auto job = jobs.find(Root(node));
    if (job != jobs.end() && !name.empty()) job->second.names.insert(name);
  }
  std::vector<JobRanks> all;
  for (auto& [root, job] : jobs) {
    job.CountRanks();
    job.FindDisputes();
    // The first name in the order of texts represents the job, so that each certificate has the
    // same.
    for (const std::string& name : job.names) {
      if (name == *job.names.begin()) {
        job.ranks.job = name;
      } else if (job.ranks.other_names.size() < limits::kJobNamesMax) {
        job.ranks.other_names.push_back(name);
      }
    }
    all.push_back(std::move(job.ranks));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const JobRanks& a, const JobRanks& b) { return a.job < b.job; });
  return all;
}

// Living workers claim their ranks now, so the times of all cores overlap.
std::vector<JobRanks> CompareRanks(const std::vector<WorkerInfo>& workers) {
  JobRankCensus census;
  for (const WorkerInfo& worker : workers) census.AddWorker(worker);
  for (const WorkerInfo& worker : workers) {
    census.AddAccount(worker.identity, worker.job, {});
    // A worker that has closed the runtime no longer claims anything.
    if (worker.state == WorkerState::kClosed) continue;
    for (const CoreInfo& core : worker.cores) {
      census.AddCore(worker.job, {.stream = {.worker = worker.identity,
                                             .kind = StreamKind::kNeuronCore,
                                             .nc_idx = core.nc_idx},
                                  .evidence = core.rank_evidence});
    }
  }
  return census.Jobs();
}

std::vector<MissingRanks> MissingOf(const std::vector<JobRanks>& jobs) {
  std::vector<MissingRanks> all;
  for (const JobRanks& job : jobs) {
    if (job.never_seen_count == 0) continue;
    all.push_back({.job = job.job,
                   .world_size = job.world_size,
                   .seen = job.ranks_seen,
                   .never_seen = job.never_seen,
                   .never_seen_count = job.never_seen_count,
                   .disputed = job.world_sizes.size() > 1});
  }
  return all;
}

// Returns a sentence for each dispute, one for those beyond the limit, and one for each
// contradiction of sizes.
std::vector<std::string> DescribeConflicts(const JobRanks& job) {
  std::vector<std::string> sentences;
  if (!job.has_conflict()) return sentences;
  const std::string of_job = job.job.empty() ? "" : fmt::format(" of job {}", job.job);
  for (const RankDispute& dispute : job.disputes) {
    sentences.push_back(
        fmt::format("worker_gid {}{} is claimed by {} cores at once: {}; they are shown separately",
                    dispute.worker_gid, of_job, dispute.claimants_count,
                    Describe(dispute.claimants, dispute.claimants_count, job.job)));
  }
  if (job.disputes_count > job.disputes.size()) {
    sentences.push_back(fmt::format("{} more worker_gids{} are claimed by several cores at once",
                                    job.disputes_count - job.disputes.size(), of_job));
  }
  if (job.world_sizes.size() > 1) {
    std::string sizes;
    for (const WorldSizeClaim& claim : job.world_sizes) {
      sizes += fmt::format("{}{} ({} core{}: {})", sizes.empty() ? "" : ", ", claim.world_size,
                           claim.cores, claim.cores == 1 ? "" : "s",
                           Describe(claim.claimants, claim.cores, job.job));
    }
    sentences.push_back(
        fmt::format("the workers{} report different world sizes: {}", of_job, sizes));
  }
  if (job.ranks_beyond_world > 0) {
    sentences.push_back(fmt::format(
        "{}{} not below the world size of {}",
        job.ranks_beyond_world == 1 ? "1 rank" : fmt::format("{} ranks", job.ranks_beyond_world),
        of_job + (job.ranks_beyond_world == 1 ? " is" : " are"), job.world_size));
  }
  return sentences;
}

}  // namespace neurontrace
