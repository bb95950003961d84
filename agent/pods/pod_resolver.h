// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/pods/pod_answer.h"
#include "agent/pods/pod_lister.h"
#include "agent/pods/process_evidence.h"

namespace neurontrace {

// The pod that a set of devices belongs to.
struct PodMatch {
  std::optional<WorkerPod> pod;  // without a container where several of one pod can be meant
  bool ambiguous = false;        // several pods can be
};

// Returns the pod that was given all of `devices`, the Neuron devices that a process has open. A
// device belongs to a pod that was given the device or one of its cores. Returns nothing for no
// devices. Pure.
PodMatch MatchPod(const PodAnswer& answer, const std::set<uint32_t>& devices);

// Counters, raised on the resolver's sequence and read by any thread. Relaxed atomics: each is read
// by itself.
struct PodCounters {
  // Queries to the kubelet, and those without a usable answer.
  std::atomic<uint64_t> asked = 0;
  std::atomic<uint64_t> failed = 0;
  std::atomic<uint64_t> attributed = 0;  // workers
  std::atomic<uint64_t> ambiguous = 0;   // workers, each once
  std::atomic<uint64_t> refused = 0;     // containers with a name or a number that cannot be
};

// Ties worker processes to pods. The kernel reports which devices a process has open and the UID of
// the pod whose control group it is in; the kubelet reports which devices each pod was given. Only
// an unambiguous match is used, and a UID that is tied to a pod stays so, as UIDs are never reused.
// docs/decisions/0032-the-kubelet-says-whose-devices-a-worker-has-open.md has the reasons.
//
// The kubelet is asked when a process that is not tied has devices open, at the earliest
// limits::kPodResourcesAskMinNs after the last query, and with a doubling pause while the question
// is the same. On one sequence, which blocks while the kubelet is asked.
class PodResolver {
 public:
  // A change of a process's pod; no pod means that the earlier one was wrong.
  struct Change {
    PodProcess process;
    std::optional<WorkerPod> pod;
    friend bool operator==(const Change&, const Change&) = default;
  };

  // `lister` and `counters` outlive it. Errors of `lister` are logged once and counted, and
  // retried.
  PodResolver(PodLister& lister, ProcessReader reader, PodCounters& counters);

  // Returns what has changed. `processes` are all workers that are there; others are forgotten.
  // `now_ns` is monotonic. Blocks for /proc, and for `lister` if it is asked.
  std::vector<Change> Poll(const std::vector<PodProcess>& processes, uint64_t now_ns);

 private:
  // What is known of one process since it was first seen.
  struct Known {
    bool settled = false;  // tied, or in no pod
    bool was_ambiguous = false;
    std::string pod_uid;
  };
  // A process that is not settled, with what the kernel reports of it now.
  struct Candidate {
    PodProcess process;
    ProcessEvidence evidence;
  };
  using PodName = std::pair<std::string, std::string>;  // namespace and name
  // The UIDs and devices of all candidates. The same question gets the same answer, so it is
  // repeated less and less often.
  using Question = std::set<std::pair<std::string, std::set<uint32_t>>>;

  // Drops what is known of processes that have ended, and ties that no process has any more.
  void ForgetAllBut(const std::vector<PodProcess>& processes);
  // Returns the processes that are not settled, with the kernel's current evidence.
  std::vector<Candidate> Collect();
  // Returns true if the kubelet is to be asked about these now, and notes that it was.
  bool CanQuery(const std::vector<Candidate>& candidates, uint64_t now_ns);
  // Returns nothing if the kubelet did not answer; the error is logged on the first failure in a
  // row.
  std::optional<PodAnswer> Ask();
  // Ties the candidates whose match is unambiguous, and unties pods that turn out to be disputed.
  void Apply(const PodAnswer& answer, const std::vector<Candidate>& candidates,
             std::vector<Change>& changes);
  // Ties the process, and with it the UID of its pod.
  void Assign(const Candidate& candidate, WorkerPod pod, std::vector<Change>& changes);
  // Counts a process once, however often it stays ambiguous.
  void RecordAmbiguous(const PodProcess& process);
  // Takes back the pod of all processes that were tied to it.
  void Untie(const PodName& pod, std::vector<Change>& changes);

  PodLister& lister_;
  const ProcessReader reader_;
  PodCounters& counters_;

  std::map<PodProcess, Known> known_;
  std::map<std::string, PodName> ties_;  // by UID, of processes that are there
  Question asked_;                       // last
  // Monotonic time of the last query, and the pause before the same question is asked again.
  std::optional<uint64_t> asked_ns_;
  uint64_t pause_ns_;
  bool failing_ = false;  // as it was logged last
  // Logged once in the life of the agent.
  bool reported_unreadable_ = false;  // the same
};

}  // namespace neurontrace
