// SPDX-License-Identifier: Apache-2.0
#include "tap/worker_facts.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tap/pthread_lock.h"

namespace neurontrace::tap {
namespace {

constexpr size_t kCommandLineBytesMax = 4096;

// Returns the bytes written. Types that do not fit are omitted. The result is not terminated.
uint32_t JoinEventTypes(const NrtLibrary& library, char* text, size_t capacity) {
  if (library.get_event_types == nullptr) return 0;
  const char** types = nullptr;
  size_t count = 0;
  if (library.get_event_types(&types, &count) != kNrtSuccess) return 0;
  size_t used = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t bytes = strlen(types[i]);
    if (bytes + 1 > capacity - used) break;
    if (used > 0) text[used++] = ',';
    memcpy(text + used, types[i], bytes);
    used += bytes;
  }
  FreeEventTypes(library, types, count);
  return static_cast<uint32_t>(used);
}

// The environment variables from which a worker's rank and job are derived. An allow-list: nothing
// else of a process's environment ever leaves it, because environments contain secrets. Their
// readers are agent/ranks and agent/source/neuron/tap/job_facts.cc (docs/user/ranks.md).
constexpr const char* kEnvironmentFacts[] = {
    // The Neuron runtime and its frameworks.
    "NEURON_RT_VISIBLE_CORES",
    "NEURON_RT_VIRTUAL_CORE_SIZE",
    "NEURON_LOGICAL_NC_CONFIG",
    "NEURON_RT_ROOT_COMM_ID",
    "NEURON_PJRT_PROCESSES_NUM_DEVICES",
    "NEURON_PJRT_PROCESS_INDEX",
    "NEURON_GLOBAL_DEVICE_ID",
    "NEURON_GLOBAL_DEVICE_COUNT",
    // torchrun.
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "ROLE_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RUN_ID",
    // Slurm. Not by prefix: SLURM_JWT is a credential.
    "SLURM_JOB_ID",
    "SLURM_JOB_NUM_NODES",
    "SLURM_ARRAY_JOB_ID",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_HET_SIZE",
    "SLURM_LOCALID",
    "SLURM_NNODES",
    "SLURM_NPROCS",
    "SLURM_NTASKS",
    "SLURM_PROCID",
    "SLURM_STEP_ID",
    "SLURM_STEP_NUM_NODES",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_TASKS_PER_NODE",
    "SLURM_TASKS_PER_NODE",
    // MPI.
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "PMI_LOCAL_RANK",
    "PMIX_NAMESPACE",
    // Kubernetes: names that pods usually get through the downward API, and from job operators.
    "HOSTNAME",
    "POD_NAME",
    "POD_NAMESPACE",
    "PET_NODE_RANK",
    "PET_RDZV_ID",
    "PET_NNODES",
    "PET_NPROC_PER_NODE",
    // neurontrace's own.
    "NEURONTRACE_JOB",
    "NEURONTRACE_LABELS",
    "NEURONTRACE_WORKER_START_ID",
    "NEURONTRACE_WORKERS_PER_NODE",
    "NEURONTRACE_WORKER_COUNT",
};

// Returns whether a variable is in the allow-list.
bool IsEnvironmentFact(const char* name, size_t name_bytes) {
  for (const char* known : kEnvironmentFacts) {
    if (strlen(known) == name_bytes && memcmp(known, name, name_bytes) == 0) return true;
  }
  return false;
}

}  // namespace

void RuntimeFacts::Gather(const NrtLibrary& library) {
  has_version = library.get_version != nullptr &&
                library.get_version(&version, sizeof version) == kNrtSuccess;
  has_instance = library.get_instance_info != nullptr &&
                 library.get_instance_info(&instance, sizeof instance) == kNrtSuccess;
  has_visible_cores = library.get_visible_vnc_count != nullptr &&
                      library.get_visible_vnc_count(&visible_cores) == kNrtSuccess;
  has_total_cores = library.get_total_vnc_count != nullptr &&
                    library.get_total_vnc_count(&total_cores) == kNrtSuccess;
  event_types_bytes = JoinEventTypes(library, event_types, sizeof event_types);
  // Also if some calls failed: they would fail again.
  complete = true;
}

void RuntimeFacts::AddTo(FactsWriter* writer) const {
  if (has_version) {
    char text[256];
    snprintf(text, sizeof text, "%llu.%llu.%llu.%llu %.*s",
             static_cast<unsigned long long>(version.major),
             static_cast<unsigned long long>(version.minor),
             static_cast<unsigned long long>(version.patch),
             static_cast<unsigned long long>(version.maintenance),
             static_cast<int>(sizeof version.detail), version.detail);
    writer->Add("runtime.version", text);
  }
  if (has_visible_cores) writer->AddNumber("runtime.visible_cores", visible_cores);
  if (has_total_cores) writer->AddNumber("runtime.total_cores", total_cores);
  if (has_instance) {
    writer->AddNumber("instance.family", instance.family);
    writer->AddNumber("instance.size", instance.size);
    writer->Add("instance.arch", instance.arch_name,
                strnlen(instance.arch_name, sizeof instance.arch_name));
    writer->Add("instance.device_revision", instance.device_revision,
                strnlen(instance.device_revision, sizeof instance.device_revision));
  }
  if (event_types_bytes > 0) writer->Add("runtime.event_types", event_types, event_types_bytes);
}

void AddProcessFacts(FactsWriter* writer) {
  char text[kCommandLineBytesMax];
  const ssize_t path_bytes = readlink("/proc/self/exe", text, sizeof text);
  if (path_bytes > 0) writer->Add("process.executable", text, static_cast<uint64_t>(path_bytes));
  const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  ssize_t bytes = read(fd, text, sizeof text);
  close(fd);
  if (bytes <= 0) return;
  // Arguments are separated by NUL.
  if (text[bytes - 1] == '\0') --bytes;
  for (ssize_t i = 0; i < bytes; ++i) {
    if (text[i] == '\0') text[i] = ' ';
  }
  writer->Add("process.command_line", text, static_cast<uint64_t>(bytes));
}

void WorkerFacts::CaptureEnvironment(const char* const* environment) {
  const PthreadLock lock(&mutex_);
  environment_bytes_ = 0;
  environment_left_out_ = 0;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const char* assignment = *environment;
    const char* equals = strchr(assignment, '=');
    if (equals == nullptr) continue;
    if (!IsEnvironmentFact(assignment, static_cast<size_t>(equals - assignment))) continue;
    const uint64_t bytes = strlen(assignment) + 1;
    // A longer value is omitted whole: a part of it could be a wrong rank.
    if (bytes > kEnvironmentValueBytesMax || bytes > kEnvironmentBytesMax - environment_bytes_) {
      ++environment_left_out_;
      continue;
    }
    memcpy(environment_ + environment_bytes_, assignment, bytes);
    environment_bytes_ += static_cast<uint32_t>(bytes);
  }
  version_.fetch_add(1, std::memory_order_release);
}

void WorkerFacts::RecordCommunicator(int32_t core, uint32_t device_id, uint32_t device_count,
                                     const char* function) {
  // A call may name no core (-1) or one beyond all cores.
  const bool known = core >= 0 && core < static_cast<int32_t>(kTapMaxCores);
  const PthreadLock lock(&mutex_);
  Communicator& slot = communicators_[known ? static_cast<uint32_t>(core) : kTapMaxCores];
  // Frameworks repeat these calls; only a change is worth publishing. Literals are compared by
  // address.
  if (slot.function == function && slot.device_id == device_id &&
      slot.device_count == device_count) {
    return;
  }
  slot = {function, device_id, device_count};
  version_.fetch_add(1, std::memory_order_release);
}

void WorkerFacts::AddTo(FactsWriter* writer) {
  char key[160];
  char value[96];
  const PthreadLock lock(&mutex_);
  for (uint32_t i = 0; i < kCommunicatorSlots; ++i) {
    const Communicator& slot = communicators_[i];
    if (slot.function == nullptr) continue;
    if (i < kTapMaxCores) {
      snprintf(key, sizeof key, "communicator.%u", i);
    } else {
      snprintf(key, sizeof key, "communicator.any");
    }
    snprintf(value, sizeof value, "%u %u %s", slot.device_id, slot.device_count, slot.function);
    writer->Add(key, value);
  }
  for (uint32_t at = 0; at < environment_bytes_;) {
    const char* assignment = environment_ + at;
    const char* equals = strchr(assignment, '=');
    snprintf(key, sizeof key, "env.%.*s", static_cast<int>(equals - assignment), assignment);
    writer->Add(key, equals + 1);
    at += static_cast<uint32_t>(strlen(assignment)) + 1;
  }
  if (environment_left_out_ > 0) writer->AddNumber("tap.env_left_out", environment_left_out_);
}

}  // namespace neurontrace::tap
