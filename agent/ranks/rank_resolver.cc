// SPDX-License-Identifier: Apache-2.0
#include "agent/ranks/rank_resolver.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "agent/ranks/environment_claims.h"
#include "agent/ranks/node_cores.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// A process that started this much later (in clock ticks, a minute) than another one with the same
// variables is its helper.
constexpr uint64_t kHelperMinTicks = 60 * 100;
constexpr char kStartVariable[] = "NEURONTRACE_WORKER_START_ID";
constexpr size_t kWarningsMax = 32;
// Bounds the pairwise comparison of workers that claim one rank.
constexpr size_t kHoldersMax = 64;
// A worker that loses one source may meet another worker by its next one, so settling is repeated.
// What still meets after this many rounds is marked contradicted, which always terminates.
constexpr int kMeetingRoundsMax = 64;

// The variables whose values together distinguish the processes of a job.
constexpr const char* kIdentityVariables[] = {"RANK",
                                              "LOCAL_RANK",
                                              "SLURM_STEP_ID",
                                              "SLURM_PROCID",
                                              "SLURM_LOCALID",
                                              "OMPI_COMM_WORLD_RANK",
                                              "PMI_RANK",
                                              "NEURON_PJRT_PROCESS_INDEX",
                                              "NEURON_GLOBAL_DEVICE_ID"};

// One worker while its job is resolved. The claims shrink as comparisons refuse them.
struct Worker {
  const RankFacts* facts = nullptr;
  int64_t cores = 0;     // 0: not known, so that nothing can be said of all of them
  std::string identity;  // its variables that tell the job's processes apart
  bool is_helper = false;
  std::map<RankSource, RankClaim> claims;  // best first
  std::vector<RankRefusal> refusals;
  std::string unfit_list_world;
  RankResolution result;

  void Refuse(RankSource source, std::string reason, bool is_expected) {
    if (claims.erase(source) == 0) return;
    refusals.push_back({std::move(reason), is_expected});
  }
  void Contradict(std::string text) {
    auto& known = result.contradictions;
    if (std::find(known.begin(), known.end(), text) != known.end()) return;
    known.push_back(text);
    result.warnings.push_back(std::move(text));
  }
  // Nothing more comes from the source.
  void DropEvidence(RankSource source, std::string reason) {
    for (CoreInfo& core : result.cores) {
      std::erase_if(core.rank_evidence, [&](const auto& e) { return e.source == source; });
    }
    refusals.push_back({std::move(reason), false});
  }
};

// Returns true if both processes existed at one time.
bool Together(const Worker& a, const Worker& b) { return RanTogether(*a.facts, *b.facts); }

// Returns whether the worker names no job and `claim` gives it all the ranks of a world.
bool IsSeparateWorld(const Worker& worker, const RankClaim& claim) {
  return worker.facts->job.empty() && claim.size == (claim.counts_cores ? worker.cores : 1);
}

// The same, by all that is known of its cores. The aggregator counts in the same way.
bool IsSeparateJob(const Worker& worker) {
  if (!worker.facts->job.empty()) return false;
  int64_t world_size = 0;
  for (const CoreInfo& core : worker.result.cores) {
    for (const RankEvidence& claim : core.rank_evidence) {
      world_size = std::max(world_size, claim.world_size);
    }
  }
  return world_size == static_cast<int64_t>(worker.result.cores.size());
}

// Empty without any of the variables: such processes are not compared as helpers.
std::string IdentityOf(const RankFacts& facts) {
  std::string identity;
  bool any = false;
  for (const char* name : kIdentityVariables) {
    const auto found = facts.environment.find(name);
    any = any || found != facts.environment.end();
    identity += (found == facts.environment.end() ? "" : found->second) + '\n';
  }
  return any ? identity + ContainerOf(facts) : std::string();
}

// Resolves the workers of one user and job. The steps of Resolve depend on each other in this
// order: helpers first, as they must not count as workers; then the claims; then comparisons that
// remove claims; then the expansion to cores, which needs the claims that are left.
class JobResolver {
 public:
  JobResolver(std::vector<Worker*> workers, const ConfiguredRanks& configured)
      : workers_(std::move(workers)), configured_(configured) {}

  void Resolve() {
    for (Worker* const worker : workers_) ListCores(*worker);
    FindHelpers();
    ReadEnvironments();
    RefuseSharedIndexes();
    ExpandClaims();
    AddConfigured();
    for (Worker* const worker : workers_) {
      DropGuessesThatAreContradicted(*worker);
      Assemble(*worker);
    }
    SettleMeetings();
    for (Worker* const worker : workers_) Finish(*worker);
  }

 private:
  // A worker's best evidence for one rank, and evidence that is to be dropped after a round.
  struct Holder {
    Worker* worker;
    RankEvidence* evidence;
  };
  struct Loss {
    Worker* worker;
    RankSource source;
    std::string reason;
  };

  static void ListCores(Worker& worker);
  void FindHelpers();
  void ReadEnvironments();
  void RefuseSharedIndexes();
  // What other workers have against claims.
  struct Objections {
    std::map<std::pair<Worker*, RankSource>, RankRefusal> refused;
    std::map<std::pair<Worker*, RankSource>, std::string> doubts;
  };
  static void Compare(RankSource source, Worker& a, Worker& b, Objections& objections);
  void ExpandClaims();
  void ExpandProcessIndex(RankSource source, const Worker& worker, RankClaim& claim) const;
  void AddConfigured();
  struct WorkerConfigured {
    ConfiguredRanks ranks;
    const char* variable;
  };
  WorkerConfigured ConfiguredFor(Worker& worker) const;
  bool ContradictsStart(const Worker& worker) const;
  static void AddConfiguredTo(const WorkerConfigured& configured, const NodeCores& found,
                              Worker& worker);
  static void DropGuessesThatAreContradicted(Worker& worker);
  static void Assemble(Worker& worker);
  static void AddObserved(Worker& worker);
  void SettleMeetings();
  static void Settle(std::vector<Holder>& holders, bool can_drop, std::vector<Loss>& losses);
  static bool CanBeSameJob(const Worker& a, const Worker& b);
  static void Finish(Worker& worker);
  static void ReportConflicts(Worker& worker);

  std::vector<Worker*> workers_;
  const ConfiguredRanks& configured_;
};

void JobResolver::ListCores(Worker& worker) {
  const RankFacts& facts = *worker.facts;
  worker.cores = std::min(facts.visible_cores, limits::kCoresPerWorkerMax);
  std::set<uint32_t> cores;
  for (uint32_t core = 0; core < worker.cores; ++core) cores.insert(core);
  for (const auto& [core, fact] : facts.communicators) cores.insert(core);
  for (const auto& [core, gid] : facts.event_gids) cores.insert(core);
  for (const uint32_t core : cores) {
    if (core < limits::kCoresPerWorkerMax) worker.result.cores.push_back({core, {}});
  }
}

// A helper inherits its parent's variables without being one of the job's processes. It is
// recognised as a descendant, or as much younger.
void JobResolver::FindHelpers() {
  std::map<std::string, std::vector<Worker*>> by_identity;
  for (Worker* const worker : workers_) {
    worker->identity = IdentityOf(*worker->facts);
    if (worker->cores > 0 && !worker->identity.empty()) {
      by_identity[worker->identity].push_back(worker);
    }
  }
  for (auto& [identity, same] : by_identity) {
    std::sort(same.begin(), same.end(), [](const Worker* a, const Worker* b) {
      return std::pair(a->facts->start_time_ticks, a->facts->pid) <
             std::pair(b->facts->start_time_ticks, b->facts->pid);
    });
    for (size_t i = 1; i < same.size(); ++i) {
      const RankFacts& facts = *same[i]->facts;
      const auto elder = std::find_if(
          same.begin(), same.begin() + static_cast<ptrdiff_t>(i), [&](const Worker* w) {
            if (w->is_helper || !Together(*w, *same[i])) return false;
            return std::find(facts.ancestors.begin(), facts.ancestors.end(), w->facts->pid) !=
                       facts.ancestors.end() ||
                   facts.start_time_ticks - w->facts->start_time_ticks >= kHelperMinTicks;
          });
      if (elder == same.begin() + static_cast<ptrdiff_t>(i)) continue;
      same[i]->is_helper = true;
      same[i]->refusals.push_back(
          {"its variables are not used for ranks: it inherits them from an older worker of this "
           "node",
           true});
    }
  }
}

void JobResolver::ReadEnvironments() {
  std::map<std::string, size_t> worlds;
  std::map<std::vector<int64_t>, size_t> lists;
  for (Worker* const worker : workers_) {
    if (worker->cores == 0 || worker->is_helper) continue;
    int64_t node_workers = 0;
    int64_t container_workers = 0;
    bool has_helper = false;
    for (const Worker* const other : workers_) {
      if (other->cores == 0 || !Together(*worker, *other)) continue;
      node_workers += other->is_helper ? 0 : 1;
      container_workers += ContainerOf(*other->facts) == ContainerOf(*worker->facts) ? 1 : 0;
      has_helper = has_helper || (other->is_helper && other->identity == worker->identity);
    }
    EnvironmentClaims read =
        ReadEnvironmentClaims(*worker->facts, worker->cores, node_workers, worker->result.warnings);
    worker->claims = std::move(read.claims);
    worker->refusals = std::move(read.refusals);
    worker->unfit_list_world = std::move(read.unfit_list_world);
    for (auto& [source, claim] : worker->claims) {
      if (container_workers > 1 && IsSeparateWorld(*worker, claim)) {
        claim.world += fmt::format(" of process {}", worker->facts->pid);
        if (claim.guess.empty()) claim.guess = "this worker, which names no job, is a separate job";
      }
      claim.world_id = worlds.try_emplace(claim.world, worlds.size()).first->second;
      claim.list_id = lists.try_emplace(claim.list, lists.size()).first->second;
      if (has_helper && claim.guess.empty()) {
        claim.guess = "a younger process of this node with the same variables is a helper";
      }
    }
  }
}

// Refuses what two workers cannot both be: one process of a world. Marks statements about the
// world's size that differ. Objections are collected first and applied afterwards, so that the
// result does not depend on the order of the workers.
void JobResolver::RefuseSharedIndexes() {
  Objections objections;
  for (size_t i = 0; i < workers_.size(); ++i) {
    for (size_t j = 0; j < workers_.size(); ++j) {
      Worker& a = *workers_[i];
      Worker& b = *workers_[j];
      if (i == j || !Together(a, b)) continue;
      for (const auto& [source, claim] : a.claims) Compare(source, a, b, objections);
    }
  }
  for (auto& [key, refusal] : objections.refused) {
    key.first->Refuse(key.second, std::move(refusal.reason), refusal.is_expected);
  }
  for (auto& [key, doubt] : objections.doubts) {
    const auto claim = key.first->claims.find(key.second);
    if (claim != key.first->claims.end()) claim->second.doubt = std::move(doubt);
  }
}

// Refuses `a`'s claim if `b` contradicts it, or puts it in doubt.
void JobResolver::Compare(RankSource source, Worker& a, Worker& b, Objections& objections) {
  const RankClaim& mine = a.claims.at(source);
  // A launcher below another one passes its variables on, which is normal.
  const bool is_expected = source >= RankSource::kMpi;
  const auto refuse = [&](std::string why) {
    objections.refused.try_emplace(
        {&a, source}, RankRefusal{fmt::format("{} is ignored: {}", mine.text, why), is_expected});
  };
  if (source == RankSource::kPjrt && !b.unfit_list_world.empty() &&
      b.unfit_list_world == mine.world) {
    return refuse(
        "another worker of this node sees a different number of cores than the list gives it");
  }
  const auto found = b.claims.find(source);
  if (found == b.claims.end() || found->second.world_id != mine.world_id) return;
  const RankClaim& other = found->second;
  if (mine.variable != other.variable || mine.counts_cores != other.counts_cores) return;
  const bool same = mine.counts_cores
                        ? mine.index < other.index + b.cores && other.index < mine.index + a.cores
                        : mine.index == other.index;
  if (same) return refuse("several workers of this node have it");
  if (mine.first_of_launcher && other.first_of_launcher && mine.launcher == other.launcher &&
      mine.first_of_launcher != other.first_of_launcher) {
    return refuse("its distance to LOCAL_RANK differs from that of another worker of this node");
  }
  if ((mine.size == 0 || other.size == 0 || mine.size == other.size) &&
      mine.list_id == other.list_id) {
    return;
  }
  const std::string_view sizes = "workers of this node report different sizes of the job";
  // The best claim stays, so that a reader who compares jobs sees both sizes.
  if (source == a.claims.begin()->first) {
    objections.doubts.try_emplace({&a, source}, fmt::format("{}: {}", mine.variable, sizes));
  } else {
    refuse(std::string(sizes));
  }
}

// Computes the rank of each core from each claim; claims for which that is impossible are refused
// after the loop, as others are computed from them.
void JobResolver::ExpandClaims() {
  std::vector<std::pair<Worker*, RankSource>> unknown;
  for (Worker* const worker : workers_) {
    for (auto& [source, claim] : worker->claims) {
      int64_t first = -1;
      if (!claim.list.empty()) {
        const auto own = claim.list.begin() + claim.index;
        first = std::accumulate(claim.list.begin(), own, int64_t{0});
        claim.world_cores = std::accumulate(own, claim.list.end(), first);
      } else if (claim.counts_cores) {
        first = claim.index;
        claim.world_cores = claim.size;
      } else {
        ExpandProcessIndex(source, *worker, claim);
        if (claim.gids.empty()) unknown.emplace_back(worker, source);
        continue;
      }
      claim.gids.resize(static_cast<size_t>(worker->cores));
      std::iota(claim.gids.begin(), claim.gids.end(), first);
      if (claim.world_cores > 0 && claim.gids.back() >= claim.world_cores) {
        unknown.emplace_back(worker, source);
      }
    }
  }
  for (const auto& [worker, source] : unknown) {
    const RankClaim& claim = worker->claims.at(source);
    std::string reason = claim.gids.empty()
                             ? fmt::format(
                                   "{} is ignored: the job's processes have different core counts, "
                                   "and some before this one are unknown",
                                   claim.text)
                             : fmt::format("{} is ignored: rank {} is not below the job's {} cores",
                                           claim.text, claim.gids.back(), claim.world_cores);
    worker->Refuse(source, std::move(reason), false);
  }
}

// Computes the ranks of a process's cores from the index that its launcher gives it. The first rank
// is the number of cores of all processes before it if those are known, else index times cores.
void JobResolver::ExpandProcessIndex(RankSource source, const Worker& worker,
                                     RankClaim& claim) const {
  std::map<int64_t, int64_t> cores_of;  // by index
  bool is_equal = true;
  for (const Worker* const other : workers_) {
    const auto found = other->claims.find(source);
    if (found == other->claims.end() || !Together(worker, *other)) continue;
    if (found->second.world_id != claim.world_id || found->second.variable != claim.variable) {
      continue;
    }
    cores_of[found->second.index] = other->cores;
    is_equal = is_equal && other->cores == worker.cores;
  }
  int64_t before = 0;
  int64_t seen_before = 0;
  int64_t all = 0;
  for (const auto& [index, cores] : cores_of) {
    all += cores;
    if (index >= claim.index) continue;
    before += cores;
    ++seen_before;
  }
  const bool knows_before = seen_before == claim.index;
  const bool knows_all = claim.size > 0 && static_cast<int64_t>(cores_of.size()) == claim.size;
  if (!knows_before && !is_equal) return;
  if (knows_all) {
    claim.world_cores = all;
  } else if (is_equal) {
    claim.world_cores = claim.size * worker.cores;
  }
  if (!knows_before) before = claim.index * worker.cores;
  claim.gids.resize(static_cast<size_t>(worker.cores));
  std::iota(claim.gids.begin(), claim.gids.end(), before);
  if (worker.cores == 1) return;
  claim.text += fmt::format(" processes of {} cores each", worker.cores);
  const bool multiplies = !knows_before || (!knows_all && claim.world_cores > 0);
  if (multiplies && !claim.equal_cores && claim.guess.empty()) {
    claim.guess = "all processes of the job have the same number of cores";
  }
}

// Numbers the node's cores for all workers, also without options: places must be given early.
void JobResolver::AddConfigured() {
  std::vector<NodeCoresWorker> numbered;
  std::vector<Worker*> owners;
  for (Worker* const worker : workers_) {
    if (worker->cores == 0 || worker->is_helper) continue;
    owners.push_back(worker);
    numbered.push_back({.facts = worker->facts,
                        .cores = worker->cores,
                        .has_task = worker->claims.contains(RankSource::kSlurm) ||
                                    worker->claims.contains(RankSource::kMpi)});
  }
  NumberNodeCores(numbered);
  for (size_t i = 0; i < owners.size(); ++i) {
    owners[i]->result.first_node_core = numbered[i].place;
    const WorkerConfigured configured = ConfiguredFor(*owners[i]);
    if (!configured.ranks.any()) continue;
    if (ContradictsStart(*owners[i])) {
      owners[i]->refusals.push_back(
          {fmt::format("{} is ignored: another worker of this node has a different value",
                       kStartVariable),
           false});
    } else {
      AddConfiguredTo(configured, numbered[i].found, *owners[i]);
    }
  }
}

// The job's own variables replace the agent's options, which hold for all jobs of the node.
JobResolver::WorkerConfigured JobResolver::ConfiguredFor(Worker& worker) const {
  const EnvironmentReader environment(worker.facts->environment, worker.result.warnings);
  WorkerConfigured configured{configured_, "--worker-start-id"};
  if (const auto start = environment.Number(kStartVariable)) {
    configured = {{.worker_start_id = start}, kStartVariable};
  }
  if (const auto count = environment.Count("NEURONTRACE_WORKERS_PER_NODE")) {
    configured.ranks.workers_per_node = count;
  }
  if (const auto count = environment.Count("NEURONTRACE_WORKER_COUNT")) {
    configured.ranks.worker_count = count;
  }
  return configured;
}

// All workers of a node have the same first rank, so two values cannot both be right.
bool JobResolver::ContradictsStart(const Worker& worker) const {
  const auto own = worker.facts->environment.find(kStartVariable);
  if (own == worker.facts->environment.end()) return false;
  return std::any_of(workers_.begin(), workers_.end(), [&](const Worker* other) {
    const auto found = other->facts->environment.find(kStartVariable);
    return found != other->facts->environment.end() && found->second != own->second &&
           Together(worker, *other);
  });
}

void JobResolver::AddConfiguredTo(const WorkerConfigured& by, const NodeCores& found,
                                  Worker& worker) {
  const ConfiguredRanks& configured = by.ranks;
  const bool is_known =
      !worker.claims.empty() && worker.claims.begin()->first < RankSource::kConfigured;
  for (const std::string& refusal : found.refusals) {
    worker.refusals.push_back({refusal, is_known || !worker.facts->communicators.empty()});
  }
  if (found.numbers.empty()) return;
  const int64_t start = configured.worker_start_id.value_or(0);
  const int64_t per_node = configured.workers_per_node.value_or(0);
  const auto [lowest, highest] = std::minmax_element(found.numbers.begin(), found.numbers.end());
  if (per_node > 0 && *lowest >= per_node) {
    worker.refusals.push_back(
        {fmt::format("configured ranks are not used: this worker's first core is number {} of the "
                     "node, but --workers-per-node is {}",
                     *lowest, per_node),
         false});
    return;
  }
  RankClaim claim{.text = fmt::format("{} {} + core {} of the node ({})", by.variable, start,
                                      found.numbers.front(), found.how),
                  .variable = by.variable,
                  .world_cores = configured.worker_count.value_or(0)};
  claim.guess = found.guess;
  int64_t last = 0;
  for (const int64_t number : found.numbers) {
    const bool takes_part = per_node == 0 || number < per_node;
    claim.gids.push_back(takes_part ? start + number : -1);
    last = std::max(last, claim.gids.back());
  }
  if (claim.world_cores > 0 && last >= claim.world_cores) {
    worker.refusals.push_back({fmt::format("{} is ignored: rank {} is not below the job's {} cores",
                                           claim.text, last, claim.world_cores),
                               false});
    return;
  }
  worker.claims.emplace(RankSource::kConfigured, std::move(claim));
}

// A guess yields to a statement, even to one of a worse source.
void JobResolver::DropGuessesThatAreContradicted(Worker& worker) {
  while (!worker.claims.empty()) {
    const RankSource source = worker.claims.begin()->first;
    const RankClaim& best = worker.claims.begin()->second;
    if (best.guess.empty()) return;
    const auto other = std::find_if(worker.claims.begin(), worker.claims.end(), [&](const auto& c) {
      return c.second.guess.empty() && c.second.gids != best.gids;
    });
    if (other == worker.claims.end()) return;
    std::string reason = fmt::format("\"{}\" is ignored: it is a guess that contradicts \"{}\"",
                                     best.text, other->second.text);
    worker.Refuse(source, std::move(reason), false);
  }
}

// Adds what calls and events named, which needs no comparison of workers.
void JobResolver::AddObserved(Worker& worker) {
  const RankFacts& facts = *worker.facts;
  std::map<int64_t, uint32_t> cores_of;  // the first core with the rank
  for (CoreInfo& core : worker.result.cores) {
    const auto it = facts.communicators.find(core.nc_idx);
    if (it == facts.communicators.end() || it->second.g_device_id < 0) continue;
    const auto [id, count] = std::pair(it->second.g_device_id, it->second.g_device_count);
    std::string detail = fmt::format("communicator call: device {} of {}", id, count);
    if (count > 0 && id >= count) {
      worker.refusals.push_back({detail + " is ignored: there is no such device", false});
      continue;
    }
    const auto [first, is_new] = cores_of.try_emplace(id, core.nc_idx);
    if (!is_new) {
      worker.Contradict(fmt::format("communicator calls give core {} and core {} the same rank, {}",
                                    first->second, core.nc_idx, id));
    }
    core.rank_evidence.push_back({.source = RankSource::kCommunicator,
                                  .worker_gid = id,
                                  .world_size = std::max<int64_t>(count, 0),
                                  .detail = std::move(detail),
                                  .contradicted = !is_new});
  }
  std::set<int64_t> event_gids;
  for (const auto& [core, gid] : facts.event_gids) {
    if (gid < 0 || core >= limits::kCoresPerWorkerMax || event_gids.insert(gid).second) continue;
    worker.refusals.push_back(
        {fmt::format("worker_gid {} of events is ignored: several cores have it", gid), false});
    return;
  }
  for (CoreInfo& core : worker.result.cores) {
    const auto it = facts.event_gids.find(core.nc_idx);
    if (it == facts.event_gids.end() || it->second < 0) continue;
    core.rank_evidence.push_back({.source = RankSource::kEvent,
                                  .worker_gid = it->second,
                                  .detail = fmt::format("events have worker_gid {}", it->second)});
  }
}

// Turns the claims that are left into evidence of each core, best first.
void JobResolver::Assemble(Worker& worker) {
  AddObserved(worker);
  for (const auto& [source, claim] : worker.claims) {
    const std::string detail =
        claim.guess.empty() ? claim.text : fmt::format("{}, assuming {}", claim.text, claim.guess);
    for (CoreInfo& core : worker.result.cores) {
      if (core.nc_idx >= claim.gids.size() || claim.gids[core.nc_idx] < 0) continue;
      core.rank_evidence.push_back({.source = source,
                                    .worker_gid = claim.gids[core.nc_idx],
                                    .world_size = claim.world_cores,
                                    .detail = detail,
                                    .guessed = !claim.guess.empty(),
                                    .contradicted = !claim.doubt.empty()});
    }
    if (!claim.doubt.empty()) worker.Contradict(claim.doubt);
  }
}

// For two workers that claim one rank: the better evidence stays. Of equal evidence both stay,
// marked contradicted, as they may be right in worlds of their own.
void JobResolver::SettleMeetings() {
  for (int round = 0; round <= kMeetingRoundsMax; ++round) {
    std::map<int64_t, std::vector<Holder>> holders;
    for (Worker* const worker : workers_) {
      for (CoreInfo& core : worker->result.cores) {
        if (core.rank_evidence.empty()) continue;
        RankEvidence& best = core.rank_evidence.front();
        auto& list = holders[best.worker_gid];
        if (list.empty() || list.back().worker != worker) list.push_back({worker, &best});
      }
    }
    std::vector<Loss> losses;
    for (auto& [gid, list] : holders) Settle(list, round < kMeetingRoundsMax, losses);
    if (losses.empty()) return;
    for (Loss& loss : losses) loss.worker->DropEvidence(loss.source, std::move(loss.reason));
  }
}

void JobResolver::Settle(std::vector<Holder>& holders, bool can_drop, std::vector<Loss>& losses) {
  const auto quality = [](const RankEvidence& e) { return std::pair(e.guessed, e.source); };
  const auto loses_to = [&](const Holder& a, const Holder& b) {
    losses.push_back(
        {a.worker, a.evidence->source,
         fmt::format(
             "\"{}\" is ignored: another worker of this node has rank {} with better evidence",
             a.evidence->detail, a.evidence->worker_gid)});
    if (b.evidence->source == RankSource::kCommunicator) return;
    b.evidence->contradicted = true;
    b.worker->Contradict(
        fmt::format("another worker of this node also claims rank {}", b.evidence->worker_gid));
  };
  for (size_t i = 0; i < holders.size(); ++i) {
    for (size_t j = i + 1; j < std::min(holders.size(), i + kHoldersMax); ++j) {
      Holder& a = holders[i];
      Holder& b = holders[j];
      if (!Together(*a.worker, *b.worker) || !CanBeSameJob(*a.worker, *b.worker)) continue;
      const auto [left, right] = std::pair(quality(*a.evidence), quality(*b.evidence));
      if (left != right && can_drop) {
        left < right ? loses_to(b, a) : loses_to(a, b);
        continue;
      }
      for (const Holder* const each : {&a, &b}) {
        each->evidence->contradicted = true;
        each->worker->Contradict(
            fmt::format("several workers of this node claim rank {}", each->evidence->worker_gid));
      }
    }
  }
}

// Returns whether two processes may belong to one job as far as the evidence goes.
bool JobResolver::CanBeSameJob(const Worker& a, const Worker& b) {
  if (!a.facts->job.empty()) return true;
  return ContainerOf(*a.facts) == ContainerOf(*b.facts) && !IsSeparateJob(a) && !IsSeparateJob(b);
}

// Marks and reports evidence that contradicts the best one.
void JobResolver::ReportConflicts(Worker& worker) {
  std::set<RankSource> told;
  for (CoreInfo& core : worker.result.cores) {
    if (core.rank_evidence.empty()) continue;
    RankEvidence& best = core.rank_evidence.front();
    for (RankEvidence& other : core.rank_evidence) {
      const bool differs = other.worker_gid != best.worker_gid;
      const bool other_world =
          other.world_size > 0 && best.world_size > 0 && other.world_size != best.world_size;
      if (!differs && !other_world) continue;
      other.contradicted = true;
      // A communicator call needs no variable's consent, and what was said none of a guess.
      const bool in_doubt =
          best.source > RankSource::kCommunicator && best.guessed >= other.guessed;
      if (in_doubt) best.contradicted = true;
      if (!told.insert(other.source).second) continue;
      std::string text =
          differs
              ? fmt::format("core {}: \"{}\" gives rank {}, but \"{}\" gives {}, which is used",
                            core.nc_idx, other.detail, other.worker_gid, best.detail,
                            best.worker_gid)
              : fmt::format("\"{}\" gives a job of {} cores, but \"{}\" gives {}, which is used",
                            other.detail, other.world_size, best.detail, best.world_size);
      if (in_doubt) {
        worker.Contradict(std::move(text));
      } else {
        worker.result.warnings.push_back(std::move(text));
      }
    }
  }
}

// Collects the warnings and guesses for people, without repetitions and within limits.
void JobResolver::Finish(Worker& worker) {
  ReportConflicts(worker);
  RankResolution& result = worker.result;
  const bool has_ranks = std::any_of(result.cores.begin(), result.cores.end(),
                                     [](const CoreInfo& c) { return !c.rank_evidence.empty(); });
  std::vector<std::string> warnings;
  for (RankRefusal& refusal : worker.refusals) {
    if (!refusal.is_expected || !has_ranks) warnings.push_back(std::move(refusal.reason));
  }
  warnings.insert(warnings.begin(), result.warnings.begin(), result.warnings.end());
  result.warnings.clear();
  for (std::string& warning : warnings) {
    auto& kept = result.warnings;
    if (std::find(kept.begin(), kept.end(), warning) != kept.end()) continue;
    kept.push_back(std::move(warning));
    if (kept.size() == kWarningsMax) break;
  }
  if (result.contradictions.size() > kWarningsMax) result.contradictions.resize(kWarningsMax);
  std::set<std::string> guesses;
  for (const CoreInfo& core : result.cores) {
    if (core.rank_evidence.empty() || !core.rank_evidence.front().guessed) continue;
    guesses.insert(core.rank_evidence.front().detail);
  }
  result.guesses.assign(guesses.begin(), guesses.end());
}

}  // namespace

std::vector<RankResolution> ResolveNode(std::span<const RankFacts> workers,
                                        const ConfiguredRanks& configured) {
  std::vector<Worker> all(workers.size());
  std::map<std::string, std::vector<Worker*>> jobs;
  for (size_t i = 0; i < workers.size(); ++i) {
    all[i].facts = &workers[i];
    jobs[JobOf(workers[i])].push_back(&all[i]);
  }
  for (auto& [job, members] : jobs) JobResolver(std::move(members), configured).Resolve();
  std::vector<RankResolution> results;
  for (Worker& worker : all) results.push_back(std::move(worker.result));
  return results;
}

}  // namespace neurontrace
