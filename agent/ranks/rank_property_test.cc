// SPDX-License-Identifier: Apache-2.0
// Random jobs: launchers, nodes, processes, cores, arrivals in any order, deaths, restarts of the
// agent, helpers, late evidence and false evidence. Whatever happens, every rank that is claimed is
// right, or marked as a guess or as contradicted, or the job's claims contradict each other where
// the aggregator sees it; two workers of a node never claim one rank without a mark; and the rank
// of a process that lives does not move.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "agent/ranks/rank_resolver.h"
#include "lib/base/sanitizers.h"

namespace neurontrace {
namespace {

enum class Launcher : uint8_t {
  kTorchrun,
  kTorchrunUnderSlurm,
  kSlurm,
  kSlurmChildren,  // one task a node that starts the processes without more
  kMpi,
  kPjrt,
  kPods,
  kVisibleCores,  // with --worker-start-id
  kLocalRank,     // the same
  kNothing,       // the same
  kCount,
};

struct Process {
  size_t node = 0;
  int64_t local = 0;  // among the processes of its node
  int64_t index = 0;  // among all, in the launcher's order
  uint32_t cores = 1;
  std::vector<int64_t> gids;  // the truth; empty for a helper
  RankFacts facts;
  bool here = false;
  std::vector<RankEvidence> last;  // the best of each core, after the last step
};

class Job {
 public:
  explicit Job(uint64_t seed) : random_(seed) {
    launcher_ = static_cast<Launcher>(Below(static_cast<uint64_t>(Launcher::kCount)));
    LayOutProcesses();
    for (Process& process : processes_) SetEnvironment(process);
    if (Chance(3)) AddFalseEvidence();
  }

  void Run() {
    std::vector<size_t> order(processes_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    for (const size_t i : order) {
      Arrive(processes_[i]);
      Check();
      if (Chance(4)) AddHelper(i);
      if (Chance(8)) RestartAgent();
      if (Chance(8)) ClaimInCommunicator(processes_[i]);
      Check();
    }
    for (int step = 0; step < 6; ++step) {
      Process& process = processes_[Below(processes_.size())];
      if (Chance(3)) Die(process);
      if (Chance(3)) ClaimInCommunicator(process);
      if (Chance(4)) RestartAgent();
      Check();
    }
  }

 private:
  uint64_t Below(uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(random_); }
  bool Chance(uint64_t of) { return Below(of) == 0; }
  static std::string Text(int64_t number) { return std::to_string(number); }

  void LayOutProcesses() {
    nodes_ = 1 + Below(4);
    const bool one_a_node = launcher_ == Launcher::kPods || Chance(4);
    const bool can_differ = launcher_ != Launcher::kPods && Chance(3);
    const uint32_t cores = uint32_t{1} << Below(3);
    std::vector<size_t> node_order(nodes_);
    for (size_t i = 0; i < nodes_; ++i) node_order[i] = i;
    std::shuffle(node_order.begin(), node_order.end(), random_);
    per_node_ = one_a_node ? 1 : static_cast<int64_t>(1 + Below(4));
    for (const size_t node : node_order) {
      for (int64_t local = 0; local < per_node_; ++local) {
        Process& process = processes_.emplace_back();
        process.node = node;
        process.local = local;
        process.index = static_cast<int64_t>(processes_.size()) - 1;
        // A process with one core is always taken to be in a job of such processes.
        process.cores = can_differ ? static_cast<uint32_t>(2 + Below(3)) : cores;
        for (uint32_t core = 0; core < process.cores; ++core) process.gids.push_back(world_++);
      }
    }
    task_of_node_ = node_order;
    // The only child of a task looks like the task, and has its rank.
    const bool is_task = launcher_ == Launcher::kSlurmChildren && per_node_ == 1;
    if (!is_task && Chance(2)) std::shuffle(task_of_node_.begin(), task_of_node_.end(), random_);
  }

  void SetEnvironment(Process& process) {
    RankFacts& facts = process.facts;
    facts.job = "job";
    facts.pid = static_cast<uint32_t>(1'000 + 10 * process.index);
    facts.start_time_ticks = 5'000 + static_cast<uint64_t>(process.local);
    facts.visible_cores = process.cores;
    auto& env = facts.environment;
    const auto count = static_cast<int64_t>(processes_.size());
    switch (launcher_) {
      case Launcher::kTorchrunUnderSlurm:
        SetTask(process, static_cast<int64_t>(nodes_), true);
        [[fallthrough]];
      case Launcher::kTorchrun:
        env["RANK"] = Text(process.index);
        env["WORLD_SIZE"] = Text(count);
        env["LOCAL_RANK"] = Text(process.local);
        env["LOCAL_WORLD_SIZE"] = Text(per_node_);
        env["GROUP_RANK"] = Text(process.index / per_node_);
        env["TORCHELASTIC_RUN_ID"] = "run";
        env["MASTER_ADDR"] = "10.0.0.1";
        break;
      case Launcher::kSlurm:
        env["SLURM_PROCID"] = Text(process.index);
        env["SLURM_LOCALID"] = Text(process.local);
        env["SLURM_STEP_ID"] = "0";
        env["SLURM_STEP_NUM_TASKS"] = Text(count);
        env["SLURM_NNODES"] = Text(static_cast<int64_t>(nodes_));
        break;
      case Launcher::kSlurmChildren:
        SetTask(process, Chance(2) ? static_cast<int64_t>(nodes_) : count, Chance(2));
        if (Chance(2)) env["LOCAL_RANK"] = Text(process.local);
        false_evidence_ = true;
        break;
      case Launcher::kMpi:
        env["OMPI_COMM_WORLD_RANK"] = Text(process.index);
        env["OMPI_COMM_WORLD_SIZE"] = Text(count);
        env["OMPI_COMM_WORLD_LOCAL_RANK"] = Text(process.local);
        env["OMPI_COMM_WORLD_LOCAL_SIZE"] = Text(per_node_);
        break;
      case Launcher::kPjrt: {
        std::string list;
        for (const Process& each : processes_) list += (list.empty() ? "" : ",") + Text(each.cores);
        env["NEURON_PJRT_PROCESSES_NUM_DEVICES"] = list;
        env["NEURON_PJRT_PROCESS_INDEX"] = Text(process.index);
        break;
      }
      case Launcher::kPods:
        env["RANK"] = Text(process.index);
        env["WORLD_SIZE"] = Text(count * process.cores);
        env["PET_NNODES"] = Text(count);
        env["PET_NODE_RANK"] = Text(process.index);
        env["PET_NPROC_PER_NODE"] = Text(process.cores);
        break;
      default:
        SetNodeCores(process);
    }
  }

  // What the one task of a node hands on to its children.
  void SetTask(Process& process, int64_t tasks, bool in_step) {
    auto& env = process.facts.environment;
    const auto at = std::find(task_of_node_.begin(), task_of_node_.end(), process.node);
    env["SLURM_PROCID"] = Text(at - task_of_node_.begin());
    env["SLURM_NTASKS"] = Text(tasks);
    env["SLURM_NNODES"] = Text(static_cast<int64_t>(nodes_));
    env["SLURM_LOCALID"] = "0";
    if (in_step) env["SLURM_STEP_ID"] = "0";
  }

  int64_t NodeStart(size_t node) const {
    for (const Process& process : processes_) {
      if (process.node == node) return process.gids.front();
    }
    return 0;
  }

  void SetNodeCores(Process& process) {
    if (launcher_ == Launcher::kLocalRank) {
      process.facts.environment["LOCAL_RANK"] = Text(process.local);
    }
    if (launcher_ != Launcher::kVisibleCores) return;
    // The node's cores in any order: the list is the truth.
    std::vector<int64_t>& free = free_cores_[process.node];
    if (process.local == 0) {
      for (const Process& other : processes_) {
        if (other.node != process.node) continue;
        for (uint32_t core = 0; core < other.cores; ++core) {
          free.push_back(static_cast<int64_t>(free.size()));
        }
      }
      node_starts_[process.node] = NodeStart(process.node);
      std::shuffle(free.begin(), free.end(), random_);
    }
    std::string list;
    for (int64_t& gid : process.gids) {
      list += (list.empty() ? "" : ",") + Text(free.back());
      gid = node_starts_[process.node] + free.back();
      free.pop_back();
    }
    process.facts.environment["NEURON_RT_VISIBLE_CORES"] = list;
  }

  // The same for all, as from a script or an image.
  void AddFalseEvidence() {
    false_evidence_ = true;
    const uint64_t kind = Below(7);
    for (Process& process : processes_) {
      auto& env = process.facts.environment;
      switch (kind) {
        case 0:
          env["PMI_RANK"] = "0";
          env["PMI_SIZE"] = "1";
          break;
        case 1:
          env["SLURM_PROCID"] = "0";
          env["SLURM_NTASKS"] = Text(static_cast<int64_t>(processes_.size()));
          break;
        case 2:
          if (!env.contains("RANK")) env["RANK"] = "0";
          break;
        case 3:
          // Where the runtime itself goes by it, it is the truth.
          if (launcher_ == Launcher::kVisibleCores) break;
          env["NEURON_RT_VISIBLE_CORES"] = "0-" + Text(process.cores - 1);
          break;
        case 4:
          env["WORLD_SIZE"] = "many";
          env["NEURON_PJRT_PROCESS_INDEX"] = "0";
          break;
        case 5:
          for (uint32_t core = 0; core < process.cores; ++core) process.facts.event_gids[core] = 0;
          break;
        default:
          env["NEURON_PJRT_PROCESSES_NUM_DEVICES"] = Text(process.cores);
          env["NEURON_PJRT_PROCESS_INDEX"] = "0";
      }
    }
  }

  void Arrive(Process& process) {
    now_ns_ += 10'000'000'000;
    process.here = true;
    process.facts.arrived_ns = now_ns_;
    agents_[process.node].push_back(&process);
  }

  void AddHelper(size_t of) {
    helpers_.push_back(std::make_unique<Process>(processes_[of]));
    Process& helper = *helpers_.back();
    helper.gids.clear();
    helper.last.clear();
    helper.cores = static_cast<uint32_t>(Below(3));
    helper.facts.visible_cores = helper.cores;
    helper.facts.communicators.clear();
    helper.facts.event_gids.clear();
    helper.facts.first_node_core.reset();
    helper.facts.pid += 1;
    helper.facts.start_time_ticks += 500;
    helper.facts.ancestors = {processes_[of].facts.pid};
    false_evidence_ = true;
    if (!HasIdentity(helper.facts)) {  // nothing tells it from a worker
      helpers_.pop_back();
      return;
    }
    Arrive(helper);
  }

  static bool HasIdentity(const RankFacts& facts) {
    return std::any_of(facts.environment.begin(), facts.environment.end(), [](const auto& entry) {
      return entry.first == "RANK" || entry.first == "LOCAL_RANK" ||
             entry.first == "SLURM_PROCID" || entry.first == "OMPI_COMM_WORLD_RANK" ||
             entry.first == "PMI_RANK" || entry.first == "NEURON_PJRT_PROCESS_INDEX";
    });
  }

  void Die(Process& process) {
    if (!process.here || process.facts.ended_ns) return;
    now_ns_ += 10'000'000'000;
    process.facts.ended_ns = now_ns_;
  }

  // Forgets who died, and learns of the others in another order.
  void RestartAgent() {
    auto& agent = agents_[Below(nodes_)];
    const size_t before = agent.size();
    std::erase_if(agent, [](const Process* process) { return process->facts.ended_ns; });
    if (agent.size() != before) forgot_ = true;
    std::shuffle(agent.begin(), agent.end(), random_);
    for (Process* const process : agent) process->facts.arrived_ns = ++now_ns_;
  }

  void ClaimInCommunicator(Process& process) {
    for (uint32_t core = 0; core < process.cores; ++core) {
      process.facts.communicators[core] = {process.gids[core], world_};
    }
  }

  void Check() {
    std::map<int64_t, int> claims;
    std::set<int64_t> worlds;
    for (auto& [node, agent] : agents_) ResolveAgent(node, agent, claims, worlds);
    for (auto& [node, agent] : agents_) {
      for (const Process* const process : agent) {
        if (!process->facts.ended_ns) CheckTruth(*process, claims, worlds);
      }
    }
  }

  void ResolveAgent(size_t node, const std::vector<Process*>& agent, std::map<int64_t, int>& claims,
                    std::set<int64_t>& worlds) {
    std::vector<RankFacts> facts;
    for (const Process* const process : agent) facts.push_back(process->facts);
    ConfiguredRanks configured;
    if (launcher_ >= Launcher::kVisibleCores) {
      configured = {node_starts_.contains(node) ? node_starts_[node] : NodeStart(node), {}, world_};
    }
    const std::vector<RankResolution> answers = ResolveNode(facts, configured);
    std::map<int64_t, const RankEvidence*> on_node;
    for (size_t i = 0; i < agent.size(); ++i) {
      Process& process = *agent[i];
      const auto had = std::exchange(process.facts.first_node_core, answers[i].first_node_core);
      if (process.facts.ended_ns) continue;
      // It moves only to where a local rank, better known than before, puts it.
      const bool is_by_order =
          !answers[i].cores.empty() && !answers[i].cores[0].rank_evidence.empty() &&
          answers[i].cores[0].rank_evidence[0].detail.find("order of start") != std::string::npos;
      if (had && is_by_order) {
        EXPECT_EQ(answers[i].first_node_core, had) << "a place moved";
      }
      process.last.resize(process.cores);
      for (uint32_t core = 0; core < process.cores; ++core) {
        const auto& list = answers[i].cores[core].rank_evidence;
        const RankEvidence best = list.empty() ? RankEvidence{} : list.front();
        CheckMove(process.last[core], best);
        process.last[core] = best;
        if (list.empty()) continue;
        ++claims[best.worker_gid];
        if (best.world_size > 0) worlds.insert(best.world_size);
        const auto [other, is_new] = on_node.try_emplace(best.worker_gid, &process.last[core]);
        const bool marked = best.contradicted || (best.source != RankSource::kCommunicator &&
                                                  other->second->contradicted);
        EXPECT_TRUE(is_new || marked) << "two claims of rank " << best.worker_gid << ": "
                                      << best.detail << " and " << other->second->detail;
      }
    }
  }

  void CheckMove(const RankEvidence& before, const RankEvidence& now) const {
    if (before.source != now.source || before.source == RankSource::kUnspecified) return;
    const bool by_place = before.detail.find("order of start") != std::string::npos &&
                          now.detail.find("order of start") != std::string::npos;
    if (!by_place && (before.guessed || before.contradicted)) return;
    // False evidence is withdrawn once another worker contradicts it. An agent that is restarted
    // does not know how many cores the processes had that died before, so that a launcher's index
    // gives its cores by a guess. A local rank keeps the numbers that it reported.
    if (!by_place && (false_evidence_ || (forgot_ && now.guessed))) return;
    EXPECT_EQ(before.worker_gid, now.worker_gid) << before.detail << " became " << now.detail;
  }

  // Returns whether all workers of the job live and are known, so that whatever contradicts false
  // evidence is there to be seen: on the node by its agent, between nodes by the aggregator.
  bool IsSettled() const {
    return !forgot_ && std::all_of(processes_.begin(), processes_.end(), [](const Process& other) {
      return other.here && !other.facts.ended_ns;
    });
  }

  void CheckTruth(const Process& process, const std::map<int64_t, int>& claims,
                  const std::set<int64_t>& worlds) {
    if (false_evidence_ && !IsSettled()) return;
    // A process whose rank stays unknown contradicts nobody: its job is shown with unknown ranks.
    const bool some_unknown =
        std::any_of(processes_.begin(), processes_.end(), [](const Process& other) {
          return other.here && std::any_of(other.last.begin(), other.last.end(), [](const auto& e) {
                   return e.source == RankSource::kUnspecified;
                 });
        });
    if (false_evidence_ && some_unknown) return;
    int64_t cores_here = 0;
    for (const Process& other : processes_) cores_here += other.here ? other.cores : 0;
    for (uint32_t core = 0; core < process.cores; ++core) {
      const RankEvidence& best = process.last[core];
      if (best.source == RankSource::kUnspecified || best.guessed || best.contradicted) continue;
      const bool right = !process.gids.empty() && best.worker_gid == process.gids[core] &&
                         (best.world_size == 0 || best.world_size == world_);
      // Where the aggregator sees it: two claims of a rank, two sizes, or more cores than a size.
      const bool is_reported = claims.at(best.worker_gid) > 1 || worlds.size() > 1 ||
                               (best.world_size > 0 && cores_here > best.world_size);
      EXPECT_TRUE(right || is_reported)
          << "core " << core << " of process " << process.index << " of " << processes_.size()
          << " claims rank " << best.worker_gid << " of " << best.world_size << " by "
          << best.detail << "; the truth is " << (process.gids.empty() ? -1 : process.gids[core])
          << " of " << world_;
    }
  }

  std::mt19937_64 random_;
  Launcher launcher_ = Launcher::kTorchrun;
  size_t nodes_ = 1;
  int64_t per_node_ = 1;
  int64_t world_ = 0;
  bool false_evidence_ = false;
  bool forgot_ = false;  // an agent was restarted after a death
  std::vector<Process> processes_;
  std::vector<std::unique_ptr<Process>> helpers_;
  std::vector<size_t> task_of_node_;
  std::map<size_t, std::vector<int64_t>> free_cores_;
  std::map<size_t, int64_t> node_starts_;
  std::map<size_t, std::vector<Process*>> agents_;
  uint64_t now_ns_ = 0;
};

TEST(RankProperty, EveryClaimIsRightOrMarked) {
  for (uint64_t seed = 0; seed < (kUnderSanitizer ? 400 : 4'000); ++seed) {
    SCOPED_TRACE(seed);
    Job(seed).Run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace neurontrace
