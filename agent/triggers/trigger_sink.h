// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/trace/trigger_rule.h"

namespace neurontrace {

// Takes fired triggers to the aggregator. Implemented by ControlSession. On the agent's sequence.
class TriggerSink {
 public:
  virtual ~TriggerSink() = default;

  // Reports a fired trigger. Returns false, without effect, if no aggregator has accepted this
  // agent. Must not call back into the caller.
  virtual bool ReportTrigger(const TriggerFired& fired) = 0;
};

}  // namespace neurontrace
