// SPDX-License-Identifier: Apache-2.0
#include "agent/ranks/environment_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace neurontrace {
namespace {

// Returns the part of a claim's text that names the size of its world; empty if that is not known.
std::string Of(int64_t count) { return count > 0 ? fmt::format(" of {}", count) : ""; }

// Reads the environment of one worker. One function for each launcher; it adds at most one claim or
// a refusal. Used once: Read moves the result out. The order of the functions matters only for
// RefuseWorldsOfOne, which compares what they added.
class ClaimReader {
 public:
  ClaimReader(const RankFacts& facts, int64_t cores, int64_t node_workers,
              std::vector<std::string>& warnings)
      : facts_(facts),
        environment_(facts.environment, warnings),
        warnings_(warnings),
        cores_(cores),
        seen_workers_(node_workers),
        node_workers_(node_workers) {}

  EnvironmentClaims Read() {
    // Workers may connect one after the other; a launcher's own count does not depend on that. The
    // counts that several launchers share are read first.
    for (const char* name : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}) {
      node_workers_ = std::max(node_workers_, environment_.Count(name).value_or(1));
    }
    step_tasks_ = environment_.FirstCount({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"});
    step_nodes_ =
        environment_.FirstCount({"SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"});
    ReadPjrt();
    ReadGlobalDevice();
    ReadTorchrun();
    ReadMpi();
    ReadSlurm();
    RefuseWorldsOfOne();
    return std::move(result_);
  }

 private:
  // Adds a refusal that is always reported.
  template <typename... Args>
  void Refuse(fmt::format_string<Args...> format, Args&&... args) {
    result_.refusals.push_back({fmt::format(format, std::forward<Args>(args)...), false});
  }
  // Adds a refusal that is reported only if the worker gets no rank from anything else.
  template <typename... Args>
  void RefuseExpected(fmt::format_string<Args...> format, Args&&... args) {
    result_.refusals.push_back({fmt::format(format, std::forward<Args>(args)...), true});
  }
  // Adds a claim after the checks that all launchers share: the rank must be below the size, and a
  // rank without a size is a guess.
  void Add(RankSource source, RankClaim claim) {
    if (claim.size > 0 && claim.index >= claim.size) {
      Refuse("{} is ignored: the rank is not below the size", claim.text);
      return;
    }
    // Launchers set rank and size together. A rank alone may be left over from something else.
    if (claim.size == 0 && !claim.is_size_ambiguous && claim.guess.empty()) {
      claim.guess = fmt::format("{} belongs to this job, although no variable gives its size",
                                claim.variable);
    }
    if (!claim.counts_cores) claim.processes = claim.size;
    result_.claims.emplace(source, std::move(claim));
  }

  // These add at most one claim each. The launcher's documented variables are in
  // docs/user/ranks.md.
  void ReadPjrt();
  bool CountsPhysicalCores(const std::vector<int64_t>& devices, int64_t index) const;
  void ReadGlobalDevice();
  void ReadTorchrun();
  // See its definition: returns true if it added or refused the claim.
  bool ReadPodIndex(RankClaim& claim);
  void ReadMpi();
  void ReadSlurm();
  bool RefuseInheritedSlurm(const std::string& reported);
  void RefuseWorldsOfOne();
  // Returns whether `size` is the number of nodes although the nodes have several workers each.
  bool CountsNodes(int64_t size) const {
    return node_workers_ > 1 && step_nodes_ && size == *step_nodes_;
  }

  const RankFacts& facts_;
  const EnvironmentReader environment_;
  std::vector<std::string>& warnings_;
  const int64_t cores_;
  const int64_t seen_workers_;
  int64_t node_workers_;  // seen, or said to be there
  // Tasks and nodes of the Slurm step, else of the job; none without Slurm's variables.
  std::optional<int64_t> step_tasks_;
  std::optional<int64_t> step_nodes_;
  EnvironmentClaims result_;
};

// Both variables together: the index alone does not give ranks, since processes may have different
// numbers of devices. The list must agree with the cores that the process sees.
void ClaimReader::ReadPjrt() {
  const auto index = environment_.Number("NEURON_PJRT_PROCESS_INDEX");
  std::vector<int64_t> devices = environment_.Numbers("NEURON_PJRT_PROCESSES_NUM_DEVICES");
  if (!index || devices.empty()) return;
  if (*index >= static_cast<int64_t>(devices.size())) {
    Refuse(
        "NEURON_PJRT_PROCESS_INDEX={} is ignored: NEURON_PJRT_PROCESSES_NUM_DEVICES lists {} "
        "processes",
        *index, devices.size());
    return;
  }
  const auto at = static_cast<size_t>(*index);
  RankClaim claim{
      .text = fmt::format("NEURON_PJRT_PROCESS_INDEX={} of {} processes with {} devices", *index,
                          devices.size(), devices[at]),
      .variable = "NEURON_PJRT_PROCESS_INDEX",
      .world = WorldOf(facts_, environment_.Text("NEURON_RT_ROOT_COMM_ID"), ""),
      .index = *index,
      .size = static_cast<int64_t>(devices.size())};
  // Halving is a repair of a common mistake, and is reported as a guess.
  if (CountsPhysicalCores(devices, *index)) {
    warnings_.push_back(fmt::format(
        "NEURON_PJRT_PROCESSES_NUM_DEVICES gives this process {} devices, but it sees {} logical "
        "cores of two physical cores each: the list is read as physical cores and halved",
        devices[at], cores_));
    for (int64_t& count : devices) count /= 2;
    claim.text += " (physical, halved)";
    claim.guess = "NEURON_PJRT_PROCESSES_NUM_DEVICES counts physical cores";
  } else if (devices[at] != cores_) {
    result_.unfit_list_world = claim.world;
    Refuse(
        "NEURON_PJRT_PROCESSES_NUM_DEVICES is ignored: it gives process {} {} devices, but the "
        "process sees {} cores",
        *index, devices[at], cores_);
    return;
  }
  claim.list = std::move(devices);
  Add(RankSource::kPjrt, std::move(claim));
}

// With two physical cores in a logical one (LNC2), job scripts must halve the count themselves, and
// some do not.
bool ClaimReader::CountsPhysicalCores(const std::vector<int64_t>& devices, int64_t index) const {
  if (devices[static_cast<size_t>(index)] != 2 * cores_) return false;
  auto size = environment_.Number("NEURON_RT_VIRTUAL_CORE_SIZE");
  if (!size) size = environment_.Number("NEURON_LOGICAL_NC_CONFIG");
  return size.value_or(2) == 2 &&
         std::all_of(devices.begin(), devices.end(), [](int64_t n) { return n % 2 == 0; });
}

// NEURON_GLOBAL_DEVICE_ID counts cores of the whole job.
void ClaimReader::ReadGlobalDevice() {
  const auto id = environment_.Number("NEURON_GLOBAL_DEVICE_ID");
  if (!id) return;
  const int64_t count = environment_.Count("NEURON_GLOBAL_DEVICE_COUNT").value_or(0);
  RankClaim claim{.text = fmt::format("NEURON_GLOBAL_DEVICE_ID={}{}", *id, Of(count)),
                  .variable = "NEURON_GLOBAL_DEVICE_ID",
                  .world = WorldOf(facts_, environment_.Text("NEURON_RT_ROOT_COMM_ID"), ""),
                  .index = *id,
                  .size = count,
                  .counts_cores = true};
  // The variable names one device; how the others follow is not documented.
  if (cores_ > 1) claim.guess = "NEURON_GLOBAL_DEVICE_ID is the rank of the first of several cores";
  Add(RankSource::kGlobalDeviceId, std::move(claim));
}

// RANK and WORLD_SIZE count processes under torchrun. Other launchers set them too, and then the
// rest of the environment decides whether they count processes, pods or cores.
void ClaimReader::ReadTorchrun() {
  const auto rank = environment_.Number("RANK");
  if (!rank) return;
  const int64_t world = environment_.Count("WORLD_SIZE").value_or(0);
  // Where torchrun's processes meet: with the port and the run's id it names the world.
  const std::string_view address = environment_.Text("MASTER_ADDR");
  RankClaim claim{.text = fmt::format("RANK={}{}", *rank, Of(world)),
                  .variable = "RANK",
                  .world = WorldOf(facts_, address,
                                   fmt::format("{} {}", environment_.Text("MASTER_PORT"),
                                               environment_.Text("TORCHELASTIC_RUN_ID"))),
                  .index = *rank,
                  .size = world};
  // Other launchers set RANK and WORLD_SIZE too, with other meanings; these variables are
  // torchrun's own.
  const bool is_torchrun = environment_.Has("TORCHELASTIC_RUN_ID") ||
                           environment_.Has("GROUP_RANK") || environment_.Has("ROLE_RANK");
  if (!is_torchrun && ReadPodIndex(claim)) return;
  if (const auto local_rank = environment_.Number("LOCAL_RANK"); is_torchrun && local_rank) {
    claim.first_of_launcher = *rank - *local_rank;
    claim.launcher = environment_.Text("GROUP_RANK");
  }
  // How RANK is to be read: as a process, as a core, or as either if the size allows both.
  const int64_t local_world = environment_.Count("LOCAL_WORLD_SIZE").value_or(0);
  if (is_torchrun || cores_ == 1) {
    // torchrun counts processes, and so does whoever gives each process one core.
  } else if (*rank % cores_ == 0 && local_world == seen_workers_ * cores_ && world % cores_ == 0) {
    claim.text += fmt::format(" counts cores, as LOCAL_WORLD_SIZE={}", local_world);
    claim.counts_cores = true;
  } else if (local_world == 0 && *rank < world && world % cores_ == 0) {
    // WORLD_SIZE may count cores, and each process has several.
    claim.size = world > 1 ? 0 : world;
    claim.is_size_ambiguous = world > 1;
  }
  Add(RankSource::kTorchrun, std::move(claim));
}

// Kubeflow's PyTorchJob sets RANK to the index of the pod and WORLD_SIZE to the number of pods
// times nprocPerNode. A torchrun inside the pod sets both again for its own processes, together
// with GROUP_RANK. Returns true if that settled the claim.
bool ClaimReader::ReadPodIndex(RankClaim& claim) {
  const auto nodes = environment_.CountIfNumber("PET_NNODES");
  const auto node_rank = environment_.Number("PET_NODE_RANK");
  if (!nodes && !node_rank) return false;
  // nprocPerNode may also be "auto", which counts as one process in each pod.
  const int64_t per_pod = environment_.CountIfNumber("PET_NPROC_PER_NODE").value_or(1);
  const int64_t world = claim.size;
  if (node_rank && *node_rank != claim.index) {
    const auto local_rank = environment_.Number("LOCAL_RANK");
    if (local_rank && claim.index == *node_rank * per_pod + *local_rank) return false;
    Refuse("{} is ignored: it contradicts PET_NODE_RANK={}", claim.text, *node_rank);
    return true;
  }
  if (nodes && world > 0 && world != *nodes && world != *nodes * per_pod) {
    Refuse("{} is ignored: PET_NNODES={} pods with PET_NPROC_PER_NODE={} give a different size",
           claim.text, *nodes, per_pod);
    return true;
  }
  // From here on the rank is the pod's index, so the world's size is the number of pods.
  claim.size = nodes.value_or(per_pod == 1 ? world : 0);
  claim.is_size_ambiguous = claim.size == 0 && world > 0;
  if (per_pod == 1) return false;  // a process a pod
  claim.text += fmt::format(" is the index of a pod with PET_NPROC_PER_NODE={}", per_pod);
  if (per_pod != cores_) {
    Refuse("{}, but this process has {} cores: its rank in the pod is unknown", claim.text, cores_);
    return true;
  }
  claim.equal_cores = true;
  Add(RankSource::kTorchrun, std::move(claim));
  return true;
}

// Open MPI's variables first, then PMI's, which MPICH and Intel MPI set.
void ClaimReader::ReadMpi() {
  std::string name = "OMPI_COMM_WORLD_RANK";
  auto rank = environment_.Number(name);
  int64_t world = environment_.Count("OMPI_COMM_WORLD_SIZE").value_or(0);
  if (!rank) {
    name = "PMI_RANK";
    rank = environment_.Number(name);
    world = environment_.Count("PMI_SIZE").value_or(0);
  }
  if (!rank) return;
  std::string reported = fmt::format("{}={}{}", name, *rank, Of(world));
  if (environment_.Count("OMPI_COMM_WORLD_LOCAL_SIZE") == 1 && node_workers_ > 1) {
    RefuseExpected(
        "{} is ignored: MPI started one process on this node, which has several workers, so it "
        "counts nodes",
        reported);
    return;
  }
  if (CountsNodes(world)) {
    RefuseExpected(
        "{} is ignored: the job has the same number of nodes, and this node has several workers, "
        "so it counts nodes",
        reported);
    return;
  }
  // A rank without a size may be a leftover; a Slurm rank that differs shows it.
  const auto slurm = environment_.Number("SLURM_PROCID");
  if (world == 0 && slurm && *slurm != *rank) {
    Refuse("{} is ignored: no variable gives the size of its world, and SLURM_PROCID={} differs",
           reported, *slurm);
    return;
  }
  RankClaim claim{.text = std::move(reported),
                  .variable = std::move(name),
                  .world = WorldOf(facts_, {}, environment_.Text("PMIX_NAMESPACE")),
                  .index = *rank,
                  .size = world};
  // PMI_SIZE is 1 also for a process that its launcher does not know.
  if (claim.variable == "PMI_RANK" && world == 1) claim.guess = "it is the only process of its job";
  Add(RankSource::kMpi, std::move(claim));
}

// SLURM_PROCID is the task's number in its step, so it is a rank only if each worker is a task.
void ClaimReader::ReadSlurm() {
  const auto rank = environment_.Number("SLURM_PROCID");
  if (!rank) return;
  RankClaim claim{.text = fmt::format("SLURM_PROCID={}{}", *rank, Of(step_tasks_.value_or(0))),
                  .variable = "SLURM_PROCID",
                  .world = fmt::format("{} {} {}", JobOf(facts_), environment_.Text("SLURM_JOB_ID"),
                                       environment_.Text("SLURM_STEP_ID")),
                  .index = *rank,
                  .size = step_tasks_.value_or(0)};
  if (RefuseInheritedSlurm(claim.text)) return;
  if (environment_.Number("SLURM_HET_SIZE").value_or(1) > 1) {
    Refuse(
        "{} is ignored: the job is heterogeneous, and the core counts of its other components are "
        "unknown",
        claim.text);
    return;
  }
  if (!environment_.Has("SLURM_STEP_ID") && !environment_.Has("SLURM_STEP_NUM_TASKS") &&
      claim.size > 1) {
    claim.guess = "the process is a task of the job and not a child of its batch script";
  }
  Add(RankSource::kSlurm, std::move(claim));
}

// A task that starts several workers, as one that runs torchrun does, passes its own SLURM_PROCID
// to all of them.
bool ClaimReader::RefuseInheritedSlurm(const std::string& reported) {
  // Tasks of each node: by the step's list, else by the job's, else the step's tasks divided by its
  // nodes and rounded up.
  auto node_tasks = environment_.LargestCount("SLURM_STEP_TASKS_PER_NODE");
  if (!node_tasks) node_tasks = environment_.LargestCount("SLURM_TASKS_PER_NODE");
  if (step_tasks_ && step_nodes_ && (!node_tasks || step_tasks_ == step_nodes_)) {
    node_tasks = (*step_tasks_ + *step_nodes_ - 1) / *step_nodes_;
  }
  if (node_tasks && *node_tasks < node_workers_) {
    RefuseExpected(
        "{} is ignored: the step has {} per node, but this node has more workers, which inherit it "
        "from their task",
        reported, *node_tasks == 1 ? "one task" : fmt::format("{} tasks", *node_tasks));
    return true;
  }
  return false;
}

// A process that was started without the launcher's help believes that it is alone, as with
// PMI_SIZE=1 beside Slurm's 4 tasks.
void ClaimReader::RefuseWorldsOfOne() {
  // The best claim of more than one process is the one that the reasons quote.
  const RankClaim* larger = nullptr;
  for (const auto& [source, claim] : result_.claims) {
    if (larger == nullptr && claim.processes > 1) larger = &claim;
  }
  if (larger == nullptr) return;
  for (auto it = result_.claims.begin(); it != result_.claims.end();) {
    const auto& [source, claim] = *it;
    if (claim.processes != 1) {
      ++it;
      continue;
    }
    // A claim of PJRT or torchrun may be right nevertheless: it puts the larger world in doubt. For
    // MPI and Slurm a world of one is a normal leftover.
    std::string reason =
        fmt::format("{} is ignored: it describes a world of one process, but \"{}\" a larger one",
                    claim.text, larger->text);
    const bool can_be_right = source < RankSource::kMpi;
    for (auto& [other_source, other] : result_.claims) {
      if (can_be_right && other_source > source && other.processes > 1) other.doubt = reason;
    }
    result_.refusals.push_back({std::move(reason), !can_be_right});
    it = result_.claims.erase(it);
  }
}

// Addresses that every node may use for itself, so that they do not name one meeting place.
bool IsThisHost(std::string_view address) {
  return address.empty() || address.starts_with("localhost") || address.starts_with("127.") ||
         address.starts_with("::1") || address.starts_with("[::1]");
}

}  // namespace

EnvironmentClaims ReadEnvironmentClaims(const RankFacts& facts, int64_t cores, int64_t node_workers,
                                        std::vector<std::string>& warnings) {
  return ClaimReader(facts, cores, node_workers, warnings).Read();
}

std::string JobOf(const RankFacts& facts) {
  // The user is part of the key, since two users may give their jobs one name.
  std::string job = fmt::format("{} {}", facts.user ? std::to_string(*facts.user) : "?", facts.job);
  if (!facts.job.empty()) return job;
  std::vector<std::string> unused;
  const EnvironmentReader environment(facts.environment, unused);
  const std::string_view address = environment.Text("MASTER_ADDR");
  if (!address.empty()) job += fmt::format("at {}:{}", address, environment.Text("MASTER_PORT"));
  return job;
}

std::string ContainerOf(const RankFacts& facts) {
  if (!facts.container_id.empty()) return facts.container_id;
  std::vector<std::string> unused;
  const EnvironmentReader environment(facts.environment, unused);
  return fmt::format("{}/{}/{}", environment.Text("POD_NAMESPACE"), environment.Text("POD_NAME"),
                     environment.Text("HOSTNAME"));
}

std::string WorldOf(const RankFacts& facts, std::string_view address, std::string_view name) {
  // A real address is the same for all nodes of a job. Without one, the job's name has to do, and
  // without both only processes of one container are taken for one world.
  const bool anywhere = !IsThisHost(address) || (address.empty() && !facts.job.empty());
  return fmt::format("{} {} {} {}", JobOf(facts), address, name,
                     anywhere ? std::string() : ContainerOf(facts));
}

}  // namespace neurontrace
