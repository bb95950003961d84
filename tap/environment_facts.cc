// SPDX-License-Identifier: Apache-2.0
#include "tap/environment_facts.h"

#include <string.h>
#include <strings.h>

namespace neurontrace::tap {

namespace {

// What agent/ranks and agent/source/neuron/job_facts.cc read, and nothing else (docs/ranks.md).
constexpr const char* kNames[] = {
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
    // Kubernetes: names that pods are commonly given through the downward API, and by job
    // operators.
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

}  // namespace

bool IsEnvironmentFact(const char* name, size_t name_bytes) {
  for (const char* known : kNames) {
    if (strlen(known) == name_bytes && memcmp(known, name, name_bytes) == 0) return true;
  }
  return false;
}

bool IsSwitchedOn(const char* value) {
  if (value == nullptr || value[0] == '\0') return false;
  return strcmp(value, "0") != 0 && strcasecmp(value, "false") != 0 &&
         strcasecmp(value, "off") != 0 && strcasecmp(value, "no") != 0;
}

}  // namespace neurontrace::tap
