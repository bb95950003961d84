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

// Rules of kSilentCore across machines: a worker none of whose cores has events while other workers
// of its job have some. An agent judges single cores by the others that it has itself; where all of
// a machine's cores are silent only the aggregator can see it. It is told by how many events a
// capture's workers have read, which agents report anyway, twice a second. On one sequence.
class WorkerSilence {
 public:
  void SetRules(const std::vector<TriggerRule>& rules);

  // A report about a worker of a capture, and the worker's job.
  void OnStatus(const CaptureWorkerStatus& status, const std::string& job, uint64_t now_ns);
  // Of captures that are over.
  void KeepOnly(const std::function<bool(const CaptureId&)>& goes_on);

  // Those that are silent now and were not said to be. `is_heard`: the worker's agent is connected,
  // and has just reported; of one that is not, nothing is known. Times are monotonic.
  std::vector<TriggerFired> Judge(uint64_t now_ns,
                                  const std::function<bool(const WorkerIdentity&)>& is_heard);

  bool has_rules() const { return !rules_.empty(); }
  size_t watched() const { return workers_.size(); }
  uint64_t not_watched() const { return not_watched_; }  // statuses beyond the limit

 private:
  struct Worker {
    std::string job;
    uint64_t events_read = 0;
    uint64_t changed_ns = 0;     // when it read some last
    std::set<std::string> told;  // rules that have fired of this silence
  };
  using Key = std::pair<CaptureId, WorkerIdentity>;

  // Those who are peers: the job, or, where that is not known, the capture.
  using Group = std::pair<std::string, CaptureId>;
  static Group GroupOf(const Key& key, const Worker& worker);

  std::vector<TriggerRule> rules_;  // of kSilentCore
  std::map<Key, Worker> workers_;   // that record, and have read events
  uint64_t not_watched_ = 0;
  uint64_t judged_ns_ = 0;
};

}  // namespace neurontrace
