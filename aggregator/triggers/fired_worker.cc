// SPDX-License-Identifier: Apache-2.0
#include "aggregator/triggers/fired_worker.h"

namespace neurontrace {

bool TakeJobFromInventory(const std::map<WorkerIdentity, WorkerInfo>& workers,
                          const TriggerRule* rule, TriggerFired& fired) {
  if (rule == nullptr) return false;
  if (rule->kind == TriggerKind::kPost) {
    fired.job = rule->job;
    return true;
  }
  const auto worker = workers.find(fired.worker);
  if (worker == workers.end()) return false;
  fired.job = worker->second.job;
  return rule->job.empty() || rule->job == fired.job;
}

}  // namespace neurontrace
