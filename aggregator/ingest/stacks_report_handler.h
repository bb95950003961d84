// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/trace/worker_stacks.h"

namespace neurontrace {

// Receives the stacks that agents report, on the coordinator's sequence. An interface because
// aggregator/stacks depends on this folder.
class StacksReportHandler {
 public:
  virtual ~StacksReportHandler() = default;
  // `stacks` comes from the network: its form is validated, but the agent may not have been asked.
  virtual void OnStacks(const std::string& agent_id, const WorkerStacks& stacks) = 0;
};

}  // namespace neurontrace
