// SPDX-License-Identifier: Apache-2.0
#include "tap/environment_facts.h"

#include <string.h>
#include <strings.h>

namespace neurontrace {

namespace {

constexpr const char* kNames[] = {
    // The Neuron runtime and its frameworks.
    "NEURON_RT_VISIBLE_CORES",
    "NEURON_RT_NUM_CORES",
    "NEURON_RT_VIRTUAL_CORE_SIZE",
    "NEURON_LOGICAL_NC_CONFIG",
    "NEURON_RT_ROOT_COMM_ID",
    "NEURON_PJRT_PROCESSES_NUM_DEVICES",
    "NEURON_PJRT_PROCESS_INDEX",
    "NEURON_PJRT_WORLD_SIZE",
    "NEURON_GLOBAL_DEVICE_ID",
    "NEURON_GLOBAL_DEVICE_COUNT",
    "NEURON_RANK_ID",
    "NEURON_LOCAL_TP",
    "CPU_COMM_ID",
    "NEURON_RT_INSPECT_ENABLE",
    "NEURON_RT_INSPECT_SYSTEM_PROFILE",
    "NEURON_RT_INSPECT_OUTPUT_DIR",
    "NEURON_RT_INSPECT_EVENT_FILTER_NC",
    "NEURON_RT_INSPECT_EVENT_FILTER_TYPE",
    // torchrun.
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
    // Slurm. Not by prefix: SLURM_JWT is a credential.
    "SLURM_JOB_ID",
    "SLURM_JOBID",
    "SLURM_JOB_NAME",
    "SLURM_JOB_NODELIST",
    "SLURM_JOB_NUM_NODES",
    "SLURM_JOB_PARTITION",
    "SLURM_JOB_USER",
    "SLURM_ARRAY_JOB_ID",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_CLUSTER_NAME",
    "SLURM_GTIDS",
    "SLURM_LOCALID",
    "SLURM_NNODES",
    "SLURM_NODEID",
    "SLURM_NODELIST",
    "SLURM_NPROCS",
    "SLURM_NTASKS",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_PROCID",
    "SLURM_RESTART_COUNT",
    "SLURM_STEP_ID",
    "SLURM_STEP_NODELIST",
    "SLURM_STEP_NUM_NODES",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_TASKS_PER_NODE",
    "SLURM_TASKS_PER_NODE",
    "SLURMD_NODENAME",
    // MPI.
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "OMPI_COMM_WORLD_NODE_RANK",
    "OMPI_UNIVERSE_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "PMI_LOCAL_RANK",
    "PMI_LOCAL_SIZE",
    "PMIX_RANK",
    "PMIX_NAMESPACE",
    // Kubernetes: names that pods are commonly given through the downward API, and by job
    // operators.
    "HOSTNAME",
    "NODE_NAME",
    "POD_NAME",
    "POD_NAMESPACE",
    "POD_UID",
    "POD_IP",
    "CONTAINER_NAME",
    "JOB_NAME",
    "JOB_COMPLETION_INDEX",
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

}  // namespace neurontrace
