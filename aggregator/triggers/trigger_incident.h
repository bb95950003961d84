// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "lib/trace/ids.h"
#include "lib/trace/trigger_rule.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// Words from outside, clean and at most `bytes_max` long; what had to be cut ends in "…".
std::string CutCause(std::string_view text, size_t bytes_max);

// What one capture is made of: who was the first to say that a rule fires, and how many others said
// so too, until the capture is over. A plain value.
class TriggerIncident {
 public:
  explicit TriggerIncident(const TriggerFired& first);

  // Another one. Those of a worker that is counted already count once.
  void Add(const TriggerFired& fired);

  const std::string& job() const { return job_; }
  // For people: what the first said, and how many others there are.
  std::string Cause() const;

 private:
  std::string job_;
  std::string first_;
  std::set<WorkerIdentity> workers_;
  bool has_more_ = false;  // beyond limits::kTriggerIncidentWorkersMax
};

// Adds to an agent's report of a rule what its aggregator knows: the job is that of the agent's
// own worker, whatever the agent says it is, and of a rule that watches no worker the rule's.
// False: it says something of a worker that it does not have, or that is of no concern to the rule
// (or there is no such rule any more). `workers` are the agent's.
bool TakeJobFromInventory(const std::map<WorkerIdentity, WorkerInfo>& workers,
                          const TriggerRule* rule, TriggerFired& fired);

}  // namespace neurontrace
