// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "agent/control/control_stream.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Reports that wait to be sent, at most one for each subject: a newer report replaces an older one
// in its place of the queue, except that a CaptureAgentStatus moves to the end. So a slow
// connection delays news but never costs memory: the size is bounded by the number of workers and
// their captures. A plain value.
class PendingReports {
 public:
  // Adds a report, or replaces the one about the same subject.
  void Put(AgentReport report);
  // Removes and returns the report that has waited longest; nothing if none waits.
  std::optional<AgentReport> Take();
  // Removes all reports that are made again on a new connection. Fired triggers stay, as nobody can
  // report those a second time.
  void ClearButTriggers();
  // Removes triggers that fired before that time: the events that they would record are gone.
  void ForgetTriggersBefore(uint64_t host_realtime_ns);
  void ForgetCapture(const CaptureId& capture_id);
  size_t size() const { return line_.size(); }

 private:
  // The subject of a report: its kind, and the worker, capture or rule that it concerns.
  struct Topic {
    size_t kind = 0;
    WorkerIdentity worker;
    CaptureId capture_id;
    bool framework = false;
    std::string rule;
    friend auto operator<=>(const Topic&, const Topic&) = default;
  };
  static Topic TopicOf(const AgentReport& report);
  // Each removes reports together with their places in the queue.
  void Remove(const Topic& topic);
  template <typename Predicate>
  void RemoveIf(Predicate predicate);

  std::map<Topic, AgentReport> reports_;
  std::deque<Topic> line_;  // the queue: each topic of reports_ once
};

}  // namespace neurontrace
