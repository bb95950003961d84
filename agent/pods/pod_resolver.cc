// SPDX-License-Identifier: Apache-2.0
#include "agent/pods/pod_resolver.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <tuple>

#include "lib/trace/pod_limits.h"

namespace neurontrace {
namespace {

// Cores are numbered through the node: device d has cores d * n to (d + 1) * n - 1.
bool Holds(const PodContainer& container, uint32_t device, uint32_t cores_per_device) {
  if (container.devices.contains(device)) return true;
  if (cores_per_device == 0) return false;
  const auto first = container.cores.lower_bound(device * cores_per_device);
  return first != container.cores.end() && *first / cores_per_device == device;
}

// Relaxed, as no other memory depends on a counter.
void Add(std::atomic<uint64_t>& counter, uint64_t by = 1) {
  counter.fetch_add(by, std::memory_order_relaxed);
}

}  // namespace

PodMatch MatchPod(const PodAnswer& answer, const std::set<uint32_t>& devices) {
  PodMatch match;
  if (devices.empty()) return match;
  // A linear search, as a node has few containers with devices.
  for (const PodContainer& container : answer.containers) {
    const bool holds_all = std::all_of(devices.begin(), devices.end(), [&](uint32_t device) {
      return Holds(container, device, answer.cores_per_device);
    });
    if (!holds_all) continue;
    if (!match.pod) {
      match.pod = container.pod;
    } else if (std::tie(match.pod->pod_namespace, match.pod->name) !=
               std::tie(container.pod.pod_namespace, container.pod.name)) {
      return {.pod = std::nullopt, .ambiguous = true};
    } else if (match.pod->container != container.pod.container) {
      // Several containers of one pod match; the pod is still certain.
      match.pod->container.clear();
    }
  }
  return match;
}

PodResolver::PodResolver(PodLister& lister, ProcessReader reader, PodCounters& counters)
    : lister_(lister),
      reader_(std::move(reader)),
      counters_(counters),
      pause_ns_(limits::kPodResourcesAskMinNs) {}

std::vector<PodResolver::Change> PodResolver::Poll(const std::vector<PodProcess>& processes,
                                                   uint64_t now_ns) {
  // Steps: drop what has ended, settle processes of known UIDs, then ask about the rest if it is
  // time.
  ForgetAllBut(processes);
  std::vector<Change> changes;
  std::vector<Candidate> open;
  for (Candidate& candidate : Collect()) {
    const auto tie = ties_.find(candidate.evidence.pod_uid);
    // Only workers of untied pods need the kubelet; all others are settled by their pod's UID.
    if (tie == ties_.end()) {
      if (!candidate.evidence.devices.empty()) open.push_back(std::move(candidate));
      continue;
    }
    Assign(candidate, {.pod_namespace = tie->second.first, .name = tie->second.second}, changes);
  }
  if (!CanQuery(open, now_ns)) return changes;
  if (const auto answer = Ask()) Apply(*answer, open, changes);
  return changes;
}

void PodResolver::ForgetAllBut(const std::vector<PodProcess>& processes) {
  const std::set<PodProcess> there(processes.begin(), processes.end());
  std::erase_if(known_, [&](const auto& entry) { return !there.contains(entry.first); });
  for (const PodProcess& process : there) known_.try_emplace(process);
  std::set<std::string> uids;
  for (const auto& [process, known] : known_) {
    if (known.settled) uids.insert(known.pod_uid);
  }
  std::erase_if(ties_, [&](const auto& tie) { return !uids.contains(tie.first); });
}

std::vector<PodResolver::Candidate> PodResolver::Collect() {
  std::vector<Candidate> candidates;
  const auto neuron_major = reader_.NeuronMajor();
  for (auto& [process, known] : known_) {
    if (known.settled) continue;
    auto evidence = reader_.Read(process, neuron_major);
    if (!evidence) continue;
    known.pod_uid = evidence->pod_uid;
    // In no pod: it is not examined again.
    known.settled = evidence->pod_uid.empty();
    if (known.settled) continue;
    // Once per agent: it is a matter of the agent's privileges and so the same for every process.
    if (!evidence->files_are_readable && !reported_unreadable_) {
      reported_unreadable_ = true;
      spdlog::warn(
          "pods: cannot read the open devices of process {}, so its pod comes from its "
          "environment; run the agent as root with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
          process.pid);
    }
    candidates.push_back({process, *std::move(evidence)});
  }
  return candidates;
}

bool PodResolver::CanQuery(const std::vector<Candidate>& candidates, uint64_t now_ns) {
  if (candidates.empty()) return false;
  Question question;
  for (const Candidate& candidate : candidates) {
    question.emplace(candidate.evidence.pod_uid, candidate.evidence.devices);
  }
  // Asked at once if there is a process or a device that was not part of the last question;
  // otherwise the same answer is to be expected.
  const bool is_new =
      !std::includes(asked_.begin(), asked_.end(), question.begin(), question.end());
  const uint64_t pause_ns = is_new ? limits::kPodResourcesAskMinNs : pause_ns_;
  if (asked_ns_ && now_ns - *asked_ns_ < pause_ns) return false;
  pause_ns_ = is_new ? limits::kPodResourcesAskMinNs
                     : std::min(2 * pause_ns_, limits::kPodResourcesAskMaxNs);
  asked_ = std::move(question);
  asked_ns_ = now_ns;
  return true;
}

std::optional<PodAnswer> PodResolver::Ask() {
  Add(counters_.asked);
  absl::StatusOr<PodAnswer> answer = lister_.List();
  if (!answer.ok()) {
    Add(counters_.failed);
    if (!std::exchange(failing_, true)) {
      spdlog::warn("pods: cannot query the kubelet: {}", answer.status().ToString());
    }
    return std::nullopt;
  }
  if (std::exchange(failing_, false)) spdlog::info("pods: the kubelet answers again");
  Add(counters_.refused, answer->refused);
  return *std::move(answer);
}

void PodResolver::Apply(const PodAnswer& answer, const std::vector<Candidate>& candidates,
                        std::vector<Change>& changes) {
  // A pod has one UID and a UID one pod. A result that contradicts this means that a process has
  // devices open that were given to another pod, as privileged containers can; neither is believed.
  std::map<std::string, std::set<PodName>> pods_of_uid;
  std::map<PodName, std::set<std::string>> uids_of_pod;
  for (const auto& [uid, pod] : ties_) uids_of_pod[pod].insert(uid);
  std::vector<PodMatch> matches;
  for (const Candidate& candidate : candidates) {
    const PodMatch& match = matches.emplace_back(MatchPod(answer, candidate.evidence.devices));
    if (!match.pod) continue;
    const PodName name{match.pod->pod_namespace, match.pod->name};
    pods_of_uid[candidate.evidence.pod_uid].insert(name);
    uids_of_pod[name].insert(candidate.evidence.pod_uid);
  }
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    if (!matches[i].pod) {
      if (matches[i].ambiguous) RecordAmbiguous(candidate.process);
      continue;
    }
    const PodName name{matches[i].pod->pod_namespace, matches[i].pod->name};
    if (pods_of_uid[candidate.evidence.pod_uid].size() == 1 && uids_of_pod[name].size() == 1) {
      Assign(candidate, *std::move(matches[i].pod), changes);
      continue;
    }
    RecordAmbiguous(candidate.process);
    // Also processes that were tied to this pod earlier: their evidence is as doubtful now.
    Untie(name, changes);
  }
}

void PodResolver::Assign(const Candidate& candidate, WorkerPod pod, std::vector<Change>& changes) {
  // From now on each process with this UID is tied without asking the kubelet.
  known_[candidate.process].settled = true;
  ties_[candidate.evidence.pod_uid] = {pod.pod_namespace, pod.name};
  Add(counters_.attributed);
  changes.push_back({candidate.process, std::move(pod)});
}

void PodResolver::RecordAmbiguous(const PodProcess& process) {
  if (!std::exchange(known_[process].was_ambiguous, true)) Add(counters_.ambiguous);
}

void PodResolver::Untie(const PodName& pod, std::vector<Change>& changes) {
  for (auto& [process, known] : known_) {
    const auto tie = ties_.find(known.pod_uid);
    if (!known.settled || tie == ties_.end() || tie->second != pod) continue;
    known.settled = false;
    RecordAmbiguous(process);
    changes.push_back({process, std::nullopt});
  }
  std::erase_if(ties_, [&](const auto& tie) { return tie.second == pod; });
}

}  // namespace neurontrace
