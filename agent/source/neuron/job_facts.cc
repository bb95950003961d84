// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/job_facts.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/clean_text.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

struct JobVariable {
  std::string_view name;
  std::string_view key;
  bool names_job = false;
};
// From the most to the least telling.
constexpr std::array<JobVariable, 7> kVariables = {{{"NEURONTRACE_JOB", "job", true},
                                                    {"SLURM_JOB_ID", "slurm", true},
                                                    {"TORCHELASTIC_RUN_ID", "torchelastic", true},
                                                    {"PET_RDZV_ID", "torchelastic", true},
                                                    {"NEURON_RT_ROOT_COMM_ID", "comm", true},
                                                    {"POD_NAMESPACE", "namespace"},
                                                    {"POD_NAME", "pod"}}};
constexpr std::string_view kArrayJob = "SLURM_ARRAY_JOB_ID";
constexpr std::string_view kArrayTask = "SLURM_ARRAY_TASK_ID";
constexpr std::string_view kLabels = "NEURONTRACE_LABELS";
constexpr std::string_view kLabelKey = "label:";
// What torchrun sets where nobody gave a run id.
constexpr std::string_view kNoRunId = "none";

std::string Clean(std::string_view text) {
  return CleanText(text, limits::kIdentityStringBytesMax);
}

std::string_view ValueOf(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  if (found == environment.end() || found->second == kNoRunId) return {};
  return found->second;
}

std::string_view WithoutSpaces(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

void AddLabels(std::string_view text, std::vector<KeyValue>& facts) {
  while (!text.empty() && facts.size() < limits::kWorkerJobFactsMax) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = WithoutSpaces(item.substr(0, equals));
    if (name.empty()) continue;
    facts.push_back({Clean(std::string(kLabelKey).append(name)),
                     Clean(WithoutSpaces(item.substr(equals + 1)))});
  }
}

}  // namespace

bool IsJobVariable(std::string_view name) {
  return name == kArrayJob || name == kArrayTask || name == kLabels ||
         std::any_of(kVariables.begin(), kVariables.end(),
                     [name](const JobVariable& variable) { return variable.name == name; });
}

std::vector<KeyValue> FindJobFacts(const Environment& environment) {
  std::vector<KeyValue> facts;
  for (const JobVariable& variable : kVariables) {
    const std::string_view value = ValueOf(environment, variable.name);
    if (!value.empty()) facts.push_back({std::string(variable.key), Clean(value)});
  }
  const std::string_view array = ValueOf(environment, kArrayJob);
  const std::string_view task = ValueOf(environment, kArrayTask);
  if (!array.empty() && !task.empty()) {
    facts.push_back({"slurm", Clean(std::string(array).append("_").append(task))});
  }
  AddLabels(ValueOf(environment, kLabels), facts);
  std::sort(facts.begin(), facts.end());
  facts.erase(std::unique(facts.begin(), facts.end()), facts.end());
  return facts;
}

std::vector<KeyValue> WithUser(std::vector<KeyValue> facts, std::optional<uid_t> user) {
  if (!user) return facts;
  KeyValue fact{"uid", std::to_string(*user)};
  if (facts.size() >= limits::kWorkerJobFactsMax) facts.resize(limits::kWorkerJobFactsMax - 1);
  facts.insert(std::upper_bound(facts.begin(), facts.end(), fact), std::move(fact));
  return facts;
}

std::string FindJob(const Environment& environment) {
  for (const JobVariable& variable : kVariables) {
    const std::string_view value = ValueOf(environment, variable.name);
    if (variable.names_job && !value.empty()) return Clean(value);
  }
  return {};
}

}  // namespace neurontrace
