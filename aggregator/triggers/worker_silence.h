// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"
#include "lib/trace/trigger_rule.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// Evaluates kSilentCore rules across machines: a worker is silent if none of its cores has events
// while other workers of its job have. An agent compares single cores with its others; only the
// aggregator can notice that all cores of a machine are silent. Uses the number of events read,
// which agents report twice a second for the workers of captures. On the coordinator's sequence.
class WorkerSilence {
 public:
  // Keeps the rules of kSilentCore; others are ignored. Forgets all workers if none is left.
  void SetRules(const std::vector<TriggerRule>& rules);

  // Takes a report about a worker of a capture, with the worker's job.
  void OnStatus(const CaptureWorkerStatus& status, const std::string& job, uint64_t now_ns);
  // Forgets captures that have ended. `is_running` is asked once for each watched worker.
  void KeepOnly(const std::function<bool(const CaptureId&)>& is_running);

  // Returns the workers that are newly silent. `is_reporting`: the worker's agent is connected and
  // has reported recently; otherwise nothing is known. Times are monotonic.
  std::vector<TriggerFired> Judge(uint64_t now_ns,
                                  const std::function<bool(const WorkerIdentity&)>& is_reporting);

  // Lets callers skip the reports of workers while no rule needs them.
  bool has_rules() const { return !rules_.empty(); }
  // Returns the number of workers that are compared.
  size_t watched() const { return workers_.size(); }
  uint64_t not_watched() const { return not_watched_; }  // reports beyond the limit

 private:
  struct Worker {
    std::string job;
    uint64_t events_read = 0;
    uint64_t changed_ns = 0;     // when events_read last changed
    std::set<std::string> told;  // rules that have fired for this silence
  };
  using Key = std::pair<CaptureId, WorkerIdentity>;

  // Workers that are compared: of one job, or of one capture if the job is unknown.
  using Group = std::pair<std::string, CaptureId>;
  // Workers without a known job are compared within their capture.
  static Group GroupOf(const Key& key, const Worker& worker);

  std::vector<TriggerRule> rules_;  // of kSilentCore
  std::map<Key, Worker> workers_;   // that record and have read events
  uint64_t not_watched_ = 0;
  // Monotonic; when Judge was last called. 0: never.
  uint64_t judged_ns_ = 0;
};

}  // namespace neurontrace
