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

using Environment = std::map<std::string, std::string, std::less<>>;

// The pod of a worker, as the kubelet has it.
struct WorkerPod {
  std::string pod_namespace;
  std::string name;
  std::string container = {};  // empty: not known
  friend bool operator==(const WorkerPod&, const WorkerPod&) = default;
};

// Whether a variable is one that the two below look at.
bool IsJobVariable(std::string_view name);

// What a process's environment says of the job it belongs to, as WorkerInfo::job_facts has it:
// sorted, cleaned, at most limits::kWorkerJobFactsMax. Of NEURONTRACE_LABELS ("team=search,run=7")
// each item with a name is the fact "label:NAME"; others are passed over. A task of a Slurm array
// has two facts "slurm", its own number and ARRAY_TASK. Pure.
std::vector<KeyValue> FindJobFacts(const Environment& environment);

// The same facts with "uid", by the kernel's word, which no environment can say. Where there are as
// many as there may be it takes the last one's place.
std::vector<KeyValue> WithUser(std::vector<KeyValue> facts, std::optional<uid_t> user);

// The job's name, for people and for telling a node's jobs apart: the most telling of those facts;
// empty where nothing names one. Pure.
std::string FindJob(const Environment& environment);

// Adds a warning for every part of the job's names that FindJobFacts and FindJob cut or leave out,
// and one if the tap left out `left_out` variables. Pure.
void WarnOfCutNames(const Environment& environment, uint32_t left_out,
                    std::vector<std::string>& warnings);

// Puts the kubelet's word in the place of the environment's: the facts "namespace", "pod" and
// "container". Where the environment said something else there is a warning. Pure.
void SetPodFacts(const WorkerPod& pod, std::vector<KeyValue>& facts,
                 std::vector<std::string>& warnings);

}  // namespace neurontrace
