// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/trace/capture_record.h"
#include "lib/trace/trigger_rule.h"
#include "neurontrace/v1/agent_gateway.pb.h"

namespace neurontrace {

// Takes what agents report about triggers. All on the coordinator's sequence.
class TriggerReportHandler {
 public:
  virtual ~TriggerReportHandler() = default;

  // Returns the rules, as an order for an agent that has just been welcomed.
  virtual v1::AgentOrder RulesOrder() const = 0;
  virtual void OnFired(const std::string& agent_id, const TriggerFired& fired) = 0;
  // The status of a worker in a capture, whatever the coordinator makes of it.
  virtual void OnWorkerStatus(const std::string& agent_id, const CaptureWorkerStatus& status) = 0;
};

}  // namespace neurontrace
