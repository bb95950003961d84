// SPDX-License-Identifier: Apache-2.0
#include "agent/ranks/rank_resolver.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "agent/ranks/environment_reader.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

// A claim that holds for consecutive cores: core nc has rank first_gid + nc.
struct Claim {
  RankSource source;
  int64_t first_gid;
  int64_t world_size;  // 0: unknown
  int64_t cores;       // cores of this process it speaks of; 0: all
  std::string detail;
};

class Resolver {
 public:
  explicit Resolver(const RankFacts& facts)
      : facts_(facts), environment_(facts.environment, result_.warnings) {}

  RankResolution Resolve() {
    ListCores();
    processes_on_node_ = facts_.workers_on_node;
    for (const char* name : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}) {
      processes_on_node_ =
          std::max<int64_t>(processes_on_node_, environment_.Count(name).value_or(1));
    }
    Communicators();
    Events();
    Pjrt();
    GlobalDeviceId();
    Torchrun();
    Configured();
    Mpi();
    Slurm();
    WarnOfConflicts();
    return std::move(result_);
  }

 private:
  template <typename... Args>
  void Warn(fmt::format_string<Args...> format, Args&&... args) {
    result_.warnings.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void ListCores() {
    std::set<uint32_t> cores;
    const uint32_t visible = std::min(facts_.visible_cores, limits::kCoresPerWorkerMax);
    for (uint32_t core = 0; core < visible; ++core) cores.insert(core);
    for (const auto& [core, fact] : facts_.communicators) cores.insert(core);
    for (const auto& [core, gid] : facts_.event_gids) cores.insert(core);
    for (const uint32_t core : cores) {
      if (core < limits::kCoresPerWorkerMax) result_.cores.push_back({core, {}});
    }
    cores_per_process_ = result_.cores.empty() ? 1 : result_.cores.back().nc_idx + 1;
    if (visible > 0) cores_per_process_ = visible;
  }

  void Communicators() {
    for (CoreInfo& core : result_.cores) {
      const auto it = facts_.communicators.find(core.nc_idx);
      if (it == facts_.communicators.end() || it->second.g_device_id < 0) continue;
      const CommunicatorFact& fact = it->second;
      core.rank_evidence.push_back({RankSource::kCommunicator, fact.g_device_id,
                                    fact.g_device_count,
                                    fmt::format("communicator call: device {} of {}",
                                                fact.g_device_id, fact.g_device_count)});
    }
  }

  void Events() {
    for (CoreInfo& core : result_.cores) {
      const auto it = facts_.event_gids.find(core.nc_idx);
      if (it == facts_.event_gids.end() || it->second < 0) continue;
      core.rank_evidence.push_back(
          {RankSource::kEvent, it->second, 0, fmt::format("events say worker_gid {}", it->second)});
    }
  }

  void Pjrt() {
    const auto index = environment_.Number("NEURON_PJRT_PROCESS_INDEX");
    std::vector<int64_t> devices = environment_.Numbers("NEURON_PJRT_PROCESSES_NUM_DEVICES");
    if (!index || devices.empty()) return;
    if (*index >= static_cast<int64_t>(devices.size())) {
      Warn(
          "NEURON_PJRT_PROCESS_INDEX={} is ignored: NEURON_PJRT_PROCESSES_NUM_DEVICES lists {} "
          "processes",
          *index, devices.size());
      return;
    }
    std::string detail = fmt::format("NEURON_PJRT_PROCESS_INDEX={} of {} processes with {} devices",
                                     *index, devices.size(), devices[*index]);
    if (CountsPhysicalCores(devices, *index)) {
      Warn(
          "NEURON_PJRT_PROCESSES_NUM_DEVICES gives this process {} devices but it sees {} logical "
          "cores of two physical cores each: taken as a count of physical cores and halved",
          devices[*index], facts_.visible_cores);
      for (int64_t& count : devices) count /= 2;
      detail += " (physical, halved)";
    } else if (facts_.visible_cores != 0 && devices[*index] != facts_.visible_cores) {
      Warn("NEURON_PJRT_PROCESSES_NUM_DEVICES gives this process {} devices but it sees {} cores",
           devices[*index], facts_.visible_cores);
    }
    const auto own = devices.begin() + *index;
    Add({RankSource::kPjrt, std::accumulate(devices.begin(), own, int64_t{0}),
         std::accumulate(devices.begin(), devices.end(), int64_t{0}), *own, std::move(detail)});
  }

  // With two physical cores in a logical one (LNC2) scripts must halve the count themselves, and
  // some do not.
  bool CountsPhysicalCores(const std::vector<int64_t>& devices, int64_t index) const {
    if (facts_.visible_cores == 0 || devices[index] != int64_t{2} * facts_.visible_cores) {
      return false;
    }
    auto size = environment_.Number("NEURON_RT_VIRTUAL_CORE_SIZE");
    if (!size) size = environment_.Number("NEURON_LOGICAL_NC_CONFIG");
    return size.value_or(2) == 2 &&
           std::all_of(devices.begin(), devices.end(), [](int64_t n) { return n % 2 == 0; });
  }

  void GlobalDeviceId() {
    const auto id = environment_.Number("NEURON_GLOBAL_DEVICE_ID");
    if (!id) return;
    const int64_t count = environment_.Count("NEURON_GLOBAL_DEVICE_COUNT").value_or(0);
    Add({RankSource::kGlobalDeviceId, *id, count, 0,
         fmt::format("NEURON_GLOBAL_DEVICE_ID={}{}", *id, Of(count))});
  }

  void Torchrun() {
    const auto rank = environment_.Number("RANK");
    if (!rank) return;
    const int64_t world = environment_.Count("WORLD_SIZE").value_or(0);
    const int64_t local_world = environment_.Count("LOCAL_WORLD_SIZE").value_or(0);
    std::string detail = fmt::format("RANK={}{}", *rank, Of(world));
    if (cores_per_process_ == 1) {
      Add({RankSource::kTorchrun, *rank, world, 0, std::move(detail)});
      return;
    }
    // torchrun counts processes. Another launcher that sets the same variables may count cores,
    // which shows when the node's share is all cores of its processes and not its processes.
    const bool torchrun = facts_.environment.contains("TORCHELASTIC_RUN_ID") ||
                          facts_.environment.contains("GROUP_RANK");
    const bool counts_cores = !torchrun && *rank % cores_per_process_ == 0 &&
                              local_world == facts_.workers_on_node * cores_per_process_ &&
                              (world == 0 || world % cores_per_process_ == 0);
    if (counts_cores) {
      detail += fmt::format(" counts cores, as LOCAL_WORLD_SIZE={}", local_world);
      Add({RankSource::kTorchrun, *rank, world, 0, std::move(detail)});
    } else {
      AddProcessRank(RankSource::kTorchrun, *rank, world, std::move(detail));
    }
  }

  void Configured() {
    const ConfiguredRanks& configured = facts_.configured;
    if (!configured.any()) return;
    const auto [first_local, how] = FirstLocalCore();
    const int64_t start = configured.worker_start_id.value_or(0);
    const int64_t per_node = configured.workers_per_node.value_or(0);
    if (per_node > 0 && first_local >= per_node) {
      Warn(
          "configured ranks are not used: this worker's first core is number {} of the node, and "
          "--workers-per-node is {}",
          first_local, per_node);
      return;
    }
    Add({RankSource::kConfigured, start + first_local, configured.worker_count.value_or(0),
         per_node > 0 ? per_node - first_local : 0,
         fmt::format("--worker-start-id {} + core {} of the node ({})", start, first_local, how)});
  }

  // Which core of the node this process's core 0 is.
  std::pair<int64_t, std::string> FirstLocalCore() const {
    if (const auto first = environment_.FirstOfRange("NEURON_RT_VISIBLE_CORES")) {
      return {*first, "NEURON_RT_VISIBLE_CORES"};
    }
    for (const char* name : {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"}) {
      if (const auto rank = environment_.Number(name)) {
        return {*rank * cores_per_process_, fmt::format("{}={}", name, *rank)};
      }
    }
    return {facts_.local_ordinal * cores_per_process_, "order of arrival"};
  }

  void Mpi() {
    std::string name = "OMPI_COMM_WORLD_RANK";
    auto rank = environment_.Number(name);
    int64_t world = environment_.Count("OMPI_COMM_WORLD_SIZE").value_or(0);
    if (!rank) {
      name = "PMI_RANK";
      rank = environment_.Number(name);
      world = environment_.Count("PMI_SIZE").value_or(0);
    }
    if (!rank) return;
    const auto local_size = environment_.Count("OMPI_COMM_WORLD_LOCAL_SIZE");
    if (local_size == 1 && processes_on_node_ > 1) {
      Warn(
          "{}={} is ignored: MPI started one process on this node, which has {} workers, so it "
          "counts nodes",
          name, *rank, processes_on_node_);
      return;
    }
    AddProcessRank(RankSource::kMpi, *rank, world, fmt::format("{}={}{}", name, *rank, Of(world)));
  }

  void Slurm() {
    const auto rank = environment_.Number("SLURM_PROCID");
    if (!rank) return;
    const int64_t tasks = environment_.Count("SLURM_NTASKS").value_or(0);
    const int64_t nodes = environment_.Count("SLURM_NNODES").value_or(0);
    if (processes_on_node_ > 1 && (tasks == nodes || tasks == 0 || nodes == 0)) {
      // One task a node that starts torchrun or the like: all its workers inherit the same id.
      Warn("SLURM_PROCID={} is ignored: {}, so it counts nodes", *rank,
           tasks == 0 || nodes == 0
               ? fmt::format("this node has {} workers and SLURM_NTASKS or SLURM_NNODES is not set",
                             processes_on_node_)
               : fmt::format("the job has one task per node ({}) and this node has {} workers",
                             tasks, processes_on_node_));
      return;
    }
    AddProcessRank(RankSource::kSlurm, *rank, tasks,
                   fmt::format("SLURM_PROCID={}{}", *rank, Of(tasks)));
  }

  // `rank` counts processes.
  void AddProcessRank(RankSource source, int64_t rank, int64_t processes, std::string detail) {
    if (processes > 0 && rank >= processes) {
      Warn("{} is ignored: the rank is not below the size", detail);
      return;
    }
    if (cores_per_process_ > 1) {
      detail += fmt::format(" processes of {} cores each", cores_per_process_);
    }
    Add({source, rank * cores_per_process_, processes * cores_per_process_, 0, std::move(detail)});
  }

  void Add(const Claim& claim) {
    for (CoreInfo& core : result_.cores) {
      if (claim.cores > 0 && core.nc_idx >= claim.cores) break;
      const int64_t gid = claim.first_gid + core.nc_idx;
      if (claim.world_size > 0 && gid >= claim.world_size) {
        Warn("{} is ignored for core {} and above: rank {} is not below the job's {} cores",
             claim.detail, core.nc_idx, gid, claim.world_size);
        break;
      }
      core.rank_evidence.push_back({claim.source, gid, claim.world_size, claim.detail});
    }
  }

  // One warning for each source that contradicts the best one, at the first core where it does.
  void WarnOfConflicts() {
    std::set<RankSource> told;
    for (const CoreInfo& core : result_.cores) {
      const RankEvidence* best = BestEvidence(core.rank_evidence);
      for (const RankEvidence& other : core.rank_evidence) {
        if (other.worker_gid == best->worker_gid || !told.insert(other.source).second) continue;
        Warn("core {}: \"{}\" gives rank {}, used is {} from \"{}\"", core.nc_idx, other.detail,
             other.worker_gid, best->worker_gid, best->detail);
      }
    }
  }

  static std::string Of(int64_t count) { return count > 0 ? fmt::format(" of {}", count) : ""; }

  const RankFacts& facts_;
  RankResolution result_;
  EnvironmentReader environment_;
  int64_t cores_per_process_ = 1;
  int64_t processes_on_node_ = 1;
};

}  // namespace

RankResolution ResolveRanks(const RankFacts& facts) { return Resolver(facts).Resolve(); }

}  // namespace neurontrace
