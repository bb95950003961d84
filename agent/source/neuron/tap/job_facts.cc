// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/tap/job_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/clean_text.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// A variable that names a job or a place in it, the key of its fact, and whether FindJob uses it.
struct JobVariable {
  std::string_view name;
  std::string_view key;
  bool names_job = false;
};
// Keys that SetPodFacts replaces by what the kubelet reports.
constexpr std::string_view kNamespaceKey = "namespace";
constexpr std::string_view kPodKey = "pod";
constexpr std::string_view kContainerKey = "container";
// From the most to the least specific.
constexpr std::array<JobVariable, 7> kVariables = {{{"NEURONTRACE_JOB", "job", true},
                                                    {"SLURM_JOB_ID", "slurm", true},
                                                    {"TORCHELASTIC_RUN_ID", "torchelastic", true},
                                                    {"PET_RDZV_ID", "torchelastic", true},
                                                    {"NEURON_RT_ROOT_COMM_ID", "comm", true},
                                                    {"POD_NAMESPACE", kNamespaceKey},
                                                    {"POD_NAME", kPodKey}}};
// Where the processes of a world meet. Another world may meet there later, so it does not name a
// job.
constexpr std::string_view kMasterAddress = "MASTER_ADDR";
constexpr std::string_view kMasterPort = "MASTER_PORT";
// A task of a Slurm array is known by both of these, as "JOB_TASK".
constexpr std::string_view kArrayJob = "SLURM_ARRAY_JOB_ID";
constexpr std::string_view kArrayTask = "SLURM_ARRAY_TASK_ID";
// Labels that the user sets, and the prefix of the keys of their facts.
constexpr std::string_view kLabels = "NEURONTRACE_LABELS";
constexpr std::string_view kLabelKey = "label:";
// The run id that torchrun sets by default.
constexpr std::string_view kNoRunId = "none";

// Returns printable UTF-8 of at most limits::kIdentityStringBytesMax bytes.
std::string Clean(std::string_view text) {
  return CleanText(text, limits::kIdentityStringBytesMax);
}

// Returns the value of the variable; empty if it is not set or is the default run id.
std::string_view ValueOf(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  // The value "none" would make all jobs without a run id look like one.
  if (found == environment.end() || found->second == kNoRunId) return {};
  return found->second;
}

std::string_view WithoutSpaces(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

// Adds a fact for each item of the form NAME=VALUE in a list that commas separate, up to
// limits::kWorkerJobFactsMax facts. WarnOfCutNames splits the list in the same way.
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

// Removes the last label, to make room for a fact that matters more. With this many facts, nearly
// all are labels.
void DropALabel(std::vector<KeyValue>& facts) {
  const auto label = std::find_if(facts.rbegin(), facts.rend(), [](const KeyValue& fact) {
    return fact.key.starts_with(kLabelKey);
  });
  if (label != facts.rend()) facts.erase(std::next(label).base());
}

}  // namespace

bool IsJobVariable(std::string_view name) {
  return name == kArrayJob || name == kArrayTask || name == kLabels || name == kMasterAddress ||
         name == kMasterPort ||
         std::any_of(kVariables.begin(), kVariables.end(),
                     [name](const JobVariable& variable) { return variable.name == name; });
}

std::vector<KeyValue> FindJobFacts(const Environment& environment) {
  std::vector<KeyValue> facts;
  for (const JobVariable& variable : kVariables) {
    const std::string_view value = ValueOf(environment, variable.name);
    if (!value.empty()) facts.push_back({std::string(variable.key), Clean(value)});
  }
  // A second fact of the same key, so that a selection finds the task by either name.
  const std::string_view array = ValueOf(environment, kArrayJob);
  const std::string_view task = ValueOf(environment, kArrayTask);
  if (!array.empty() && !task.empty()) {
    facts.push_back({"slurm", Clean(std::string(array).append("_").append(task))});
  }
  const std::string_view master = ValueOf(environment, kMasterAddress);
  if (!master.empty()) {
    const std::string_view port = ValueOf(environment, kMasterPort);
    facts.push_back(
        {"master", Clean(fmt::format("{}{}{}", master, port.empty() ? "" : ":", port))});
  }
  AddLabels(ValueOf(environment, kLabels), facts);
  std::sort(facts.begin(), facts.end());
  // Two variables may state the same, as TORCHELASTIC_RUN_ID and PET_RDZV_ID do.
  facts.erase(std::unique(facts.begin(), facts.end()), facts.end());
  return facts;
}

std::vector<KeyValue> WithUser(std::vector<KeyValue> facts, std::optional<uid_t> user) {
  if (!user) return facts;
  KeyValue fact{"uid", std::to_string(*user)};
  if (facts.size() >= limits::kWorkerJobFactsMax) DropALabel(facts);
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

void WarnOfCutNames(const Environment& environment, uint32_t left_out,
                    std::vector<std::string>& warnings) {
  // Warnings are part of each report of the worker, so their number is limited.
  const auto warn = [&](std::string warning) {
    if (warnings.size() < limits::kWorkerWarningsMax) warnings.push_back(std::move(warning));
  };
  for (const JobVariable& variable : kVariables) {
    const size_t bytes = ValueOf(environment, variable.name).size();
    if (bytes <= limits::kIdentityStringBytesMax) continue;
    warn(fmt::format(
        "{} has {} bytes and is truncated to {}; values that differ only after that count as equal",
        variable.name, bytes, limits::kIdentityStringBytesMax));
  }
  // Labels are split again, since the facts do not show which of them were cut or omitted.
  size_t labels = 0;
  size_t unnamed = 0;
  size_t cut = 0;
  for (std::string_view text = ValueOf(environment, kLabels); !text.empty();) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (WithoutSpaces(item).empty()) continue;
    const std::string_view name = WithoutSpaces(item.substr(0, item.find('=')));
    const size_t equals = item.find('=');
    const bool is_label = equals != std::string_view::npos && !name.empty();
    ++(is_label ? labels : unnamed);
    const size_t longest =
        std::max(kLabelKey.size() + name.size(), item.size() - std::min(equals, item.size()));
    cut += is_label && longest > limits::kIdentityStringBytesMax ? 1 : 0;
  }
  if (unnamed > 0) {
    warn(fmt::format("NEURONTRACE_LABELS: {} ignored because not of the form NAME=VALUE", unnamed));
  }
  if (cut > 0) {
    warn(fmt::format("NEURONTRACE_LABELS: {} truncated; the limit is {} bytes", cut,
                     limits::kIdentityStringBytesMax));
  }
  // Other facts may take places of labels, too.
  const size_t facts = FindJobFacts(environment).size();
  if (labels > 0 && facts >= limits::kWorkerJobFactsMax) {
    warn(fmt::format("NEURONTRACE_LABELS has {} labels, but only {} job facts of a worker are kept",
                     labels, limits::kWorkerJobFactsMax));
  }
  if (left_out > 0) {
    warn(fmt::format("{} variables with its job or rank exceed the tap's limit and are ignored",
                     left_out));
  }
}

void SetPodFacts(const WorkerPod& pod, std::vector<KeyValue>& facts,
                 std::vector<std::string>& warnings) {
  // A process may inherit or set these variables as it likes; the kubelet's values are the pod's
  // own.
  const struct {
    std::string_view key;
    const std::string& value;
  } facts_of_pod[] = {
      {kNamespaceKey, pod.pod_namespace}, {kPodKey, pod.name}, {kContainerKey, pod.container}};
  for (const auto& [key, value] : facts_of_pod) {
    if (value.empty()) continue;
    std::erase_if(facts, [&](const KeyValue& fact) {
      if (fact.key != key) return false;
      if (fact.value != value && warnings.size() < limits::kWorkerWarningsMax) {
        warnings.push_back(fmt::format(
            "its environment has {} \"{}\", but the kubelet reports \"{}\", which is used", key,
            fact.value, value));
      }
      return true;
    });
    if (facts.size() >= limits::kWorkerJobFactsMax) DropALabel(facts);
    facts.insert(facts.begin(), {std::string(key), value});
  }
  std::sort(facts.begin(), facts.end());
}

}  // namespace neurontrace
