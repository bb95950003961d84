// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/trace/capture_spec.h"

namespace neurontrace {

// Variables of a process by name, as far as they were read.
using Environment = std::map<std::string, std::string, std::less<>>;

// The pod of a worker, as the kubelet reports it.
struct WorkerPod {
  std::string pod_namespace;
  std::string name;
  // Empty if the kubelet does not tell which container it is.
  std::string container = {};
  friend bool operator==(const WorkerPod&, const WorkerPod&) = default;
};

// Returns whether FindJobFacts or FindJob uses this variable. Pure.
bool IsJobVariable(std::string_view name);

// Returns what a process's environment states about its job, in the form of WorkerInfo::job_facts:
// sorted, cleaned, at most limits::kWorkerJobFactsMax. Each named item of NEURONTRACE_LABELS
// ("team=search,run=7") is the fact "label:NAME"; items without a name are skipped. A task of a
// Slurm array has two facts "slurm", its own job id and ARRAY_TASK. Pure.
std::vector<KeyValue> FindJobFacts(const Environment& environment);

// Returns the facts with "uid" as the kernel reports it, which no environment can set. If there is
// no room, it replaces the last label. Pure.
std::vector<KeyValue> WithUser(std::vector<KeyValue> facts, std::optional<uid_t> user);

// Returns the job's name, for people and to tell a node's jobs apart: the most specific of those
// facts; empty if nothing names a job. Pure.
std::string FindJob(const Environment& environment);

// Adds a warning for every part of the job's names that FindJobFacts and FindJob cut or omit, and
// one if the tap omitted `left_out` variables. Pure.
void WarnOfCutNames(const Environment& environment, uint32_t left_out,
                    std::vector<std::string>& warnings);

// Replaces the environment's facts "namespace", "pod" and "container" by the kubelet's. Adds a
// warning if the environment contradicts. Pure.
void SetPodFacts(const WorkerPod& pod, std::vector<KeyValue>& facts,
                 std::vector<std::string>& warnings);

}  // namespace neurontrace
