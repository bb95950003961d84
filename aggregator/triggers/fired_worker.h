// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "trace/ids.h"
#include "trace/trigger_rule.h"
#include "trace/worker_info.h"

namespace neurontrace {

// Makes what an agent says of a rule into what its aggregator knows: the job is that of the agent's
// own worker, whatever the agent says it is, and of a rule that watches no worker the rule's.
// False: it says something of a worker that it does not have, or that is of no concern to the rule
// (or there is no such rule any more). `workers` are the agent's.
bool TakeJobFromInventory(const std::map<WorkerIdentity, WorkerInfo>& workers,
                          const TriggerRule* rule, TriggerFired& fired);

}  // namespace neurontrace
