// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "agent/control/control_stream.h"
#include "trace/ids.h"

namespace neurontrace {

// Reports that wait to be sent, at most one for each thing they are about: a newer one takes the
// place of an older one that has not been sent, at its place in line (a CaptureAgentStatus at the
// end of it). So a slow connection costs news, never memory: there are as many as there are workers
// and their captures. A plain value.
class PendingReports {
 public:
  void Put(AgentReport report);
  // The longest waiting, which is then no longer here.
  std::optional<AgentReport> Take();
  // All but triggers that have fired: those cannot be told again by who told them.
  void ClearButTriggers();
  // Triggers that fired before that time: they would record what is over.
  void ForgetTriggersBefore(uint64_t host_realtime_ns);
  void ForgetCapture(const CaptureId& capture_id);
  size_t size() const { return reports_.size(); }

 private:
  // What a report is about: kind, worker, capture, rule of a trigger (or none of each).
  struct Topic {
    size_t kind = 0;
    WorkerIdentity worker;
    CaptureId capture_id;
    bool framework = false;
    std::string rule;
    friend auto operator<=>(const Topic&, const Topic&) = default;
  };
  static Topic TopicOf(const AgentReport& report);

  std::map<Topic, AgentReport> reports_;
  std::deque<Topic> line_;  // each topic of reports_ once, and some that are gone
};

}  // namespace neurontrace
