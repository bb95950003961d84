// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/pods/pod_answer.h"
#include "agent/pods/process_evidence.h"

namespace neurontrace {

// Whose devices these are.
struct PodMatch {
  std::optional<WorkerPod> pod;  // without a container where several of one pod can be meant
  bool ambiguous = false;        // several pods can be
};

// The pod that was given all of `devices`, the open ones of a process; a device belongs to whoever
// was given one of its cores. Nothing for no devices. Pure.
PodMatch MatchPod(const PodAnswer& answer, const std::set<uint32_t>& devices);

// What has been counted; read on any thread.
struct PodCounters {
  std::atomic<uint64_t> asked = 0;
  std::atomic<uint64_t> failed = 0;
  std::atomic<uint64_t> attributed = 0;  // workers
  std::atomic<uint64_t> ambiguous = 0;   // workers, each once
  std::atomic<uint64_t> refused = 0;     // containers with a name or a number that cannot be
};

// Ties worker processes to pods: the kernel says which devices a process has open and which pod's
// UID its control group has, and the kubelet which devices each pod was given. Only what has one
// answer is used, and a pod's UID that is tied to a pod stays so, as UIDs do not come again.
//
// The kubelet is asked when a process that is not tied has devices open: at the soonest after
// limits::kPodResourcesAskMinNs, and ever more rarely while the question stays the same.
// On one sequence, which waits where the kubelet does.
class PodResolver {
 public:
  using Lister = std::function<absl::StatusOr<PodAnswer>()>;
  // What is new of a process; nothing: what was said of it does not hold.
  struct Change {
    PodProcess process;
    std::optional<WorkerPod> pod;
    friend bool operator==(const Change&, const Change&) = default;
  };

  // `counters` outlives it.
  PodResolver(Lister lister, ProcessReader reader, PodCounters& counters);

  // `processes` are all workers that are there. `now_ns` is monotonic.
  std::vector<Change> Look(const std::vector<PodProcess>& processes, uint64_t now_ns);

 private:
  struct Known {
    bool settled = false;  // tied, or in no pod
    bool was_ambiguous = false;
    std::string pod_uid;
  };
  struct Candidate {
    PodProcess process;
    ProcessEvidence evidence;
  };
  using PodName = std::pair<std::string, std::string>;  // namespace and name
  using Question = std::set<std::pair<std::string, std::set<uint32_t>>>;

  void ForgetAllBut(const std::vector<PodProcess>& processes);
  // Those that have to be told, by what the kernel says now.
  std::vector<Candidate> Collect();
  bool MayAsk(const std::vector<Candidate>& candidates, uint64_t now_ns);
  std::optional<PodAnswer> Ask();
  void Apply(const PodAnswer& answer, const std::vector<Candidate>& candidates,
             std::vector<Change>& changes);
  void Tie(const Candidate& candidate, WorkerPod pod, std::vector<Change>& changes);
  void NoteAmbiguous(const PodProcess& process);
  // Takes back what was said of the processes of this pod.
  void Untie(const PodName& pod, std::vector<Change>& changes);

  const Lister lister_;
  const ProcessReader reader_;
  PodCounters& counters_;

  std::map<PodProcess, Known> known_;
  std::map<std::string, PodName> ties_;  // by UID, of processes that are there
  Question asked_;                       // last
  std::optional<uint64_t> asked_ns_;
  uint64_t pause_ns_;
  bool failing_ = false;          // as it was logged last
  bool says_unreadable_ = false;  // the same
};

}  // namespace neurontrace
