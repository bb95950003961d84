// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/trace/capture_record.h"
#include "lib/trace/trigger_rule.h"
#include "neurontrace/v1/agent_gateway.pb.h"

namespace neurontrace {

// Receives what agents report about triggers, on the coordinator's sequence. An interface because
// aggregator/triggers depends on this folder.
class TriggerReportHandler {
 public:
  virtual ~TriggerReportHandler() = default;

  // Returns the rules, as an order for an agent that has just been welcomed.
  virtual v1::AgentOrder RulesOrder() const = 0;
  // Handles the report of an agent that a rule has fired for one of its workers. `fired` comes from
  // the network; its contents are validated, but the agent may be wrong about the worker and the
  // job.
  virtual void OnFired(const std::string& agent_id, const TriggerFired& fired) = 0;
  // Receives the status of a worker in a capture, even if the coordinator ignores it.
  virtual void OnWorkerStatus(const std::string& agent_id, const CaptureWorkerStatus& status) = 0;
};

}  // namespace neurontrace
