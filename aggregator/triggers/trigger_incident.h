// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"
#include "lib/trace/trigger_rule.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// Returns external text cleaned and cut to `bytes_max` bytes; a cut text ends in "…". The result is
// valid UTF-8 without control characters, because it ends up in logs, records and terminals.
std::string CutCause(std::string_view text, size_t bytes_max);

// One incident: who reported first that a rule fires, and how many others did until its capture
// ended. A plain value.
class TriggerIncident {
 public:
  // Starts with the first report, which provides job and cause; its worker counts as the first one.
  explicit TriggerIncident(const TriggerFired& first);

  // Adds a report; a worker counts once.
  void Add(const TriggerFired& fired);

  const std::string& job() const { return job_; }
  // Returns the workers of the job that the first report is about; empty: all.
  const CaptureSpec::Selection& narrowed() const { return narrowed_; }
  // Returns the workers whose stacks a rule takes, at most limits::kStacksWorkersMax.
  std::vector<WorkerIdentity> Suspects() const { return {suspects_.begin(), suspects_.end()}; }
  // Describes, for people, the first report and the number of others.
  std::string Cause() const;

 private:
  void AddSuspects(const TriggerFired& fired);

  // Of the first report.
  std::string job_;
  std::string first_;
  CaptureSpec::Selection narrowed_;
  // Workers that have reported, the first one included.
  std::set<WorkerIdentity> workers_;
  std::set<WorkerIdentity> suspects_;
  bool has_more_ = false;  // beyond limits::kTriggerIncidentWorkersMax
};

// Sets the job of an agent's report from the inventory: that of the agent's own worker, whatever
// the report states, or the rule's for a rule that watches no worker. Returns false if the agent
// has no such worker, the rule does not concern it, or `rule` is null. `workers` are the agent's.
bool TakeJobFromInventory(const std::map<WorkerIdentity, WorkerInfo>& workers,
                          const TriggerRule* rule, TriggerFired& fired);

}  // namespace neurontrace
