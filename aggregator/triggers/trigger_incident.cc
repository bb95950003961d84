// SPDX-License-Identifier: Apache-2.0
#include "aggregator/triggers/trigger_incident.h"

#include <fmt/format.h>

#include "lib/base/clean_text.h"
#include "lib/trace/stacks_limits.h"
#include "lib/trace/trigger_limits.h"

namespace neurontrace {
namespace {

// Leaves room for the number of others.
constexpr size_t kFirstBytesMax = limits::kDetailBytesMax - 64;

}  // namespace

std::string CutCause(std::string_view text, size_t bytes_max) {
  constexpr std::string_view kCut = "…";
  std::string cause = CleanText(text, bytes_max);
  if (cause.size() == text.size()) return cause;
  return CleanText(text, bytes_max - kCut.size()).append(kCut);
}

TriggerIncident::TriggerIncident(const TriggerFired& first)
    : job_(first.job), first_(CutCause(first.cause, kFirstBytesMax)), narrowed_(first.narrowed) {
  workers_.insert(first.worker);
  AddSuspects(first);
}

void TriggerIncident::AddSuspects(const TriggerFired& fired) {
  const auto add = [this](const WorkerIdentity& worker) {
    if (worker.pid != 0 && suspects_.size() < limits::kStacksWorkersMax) suspects_.insert(worker);
  };
  add(fired.worker);
  for (const WorkerIdentity& worker : fired.suspects) add(worker);
}

void TriggerIncident::Add(const TriggerFired& fired) {
  AddSuspects(fired);
  if (workers_.contains(fired.worker)) return;
  if (workers_.size() >= limits::kTriggerIncidentWorkersMax) {
    has_more_ = true;
    return;
  }
  workers_.insert(fired.worker);
}

// Beyond the limit the number is a lower bound.
std::string TriggerIncident::Cause() const {
  const size_t others = workers_.size() - 1;
  if (others == 0) return first_;
  return fmt::format("{} (and {}{} more)", first_, others, has_more_ ? " or" : "");
}

bool TakeJobFromInventory(const std::map<WorkerIdentity, WorkerInfo>& workers,
                          const TriggerRule* rule, TriggerFired& fired) {
  if (rule == nullptr) return false;
  if (rule->kind == TriggerKind::kPost) {
    // A POST concerns no worker; what it states about one is ignored.
    fired.job = rule->job;
    return true;
  }
  const auto worker = workers.find(fired.worker);
  if (worker == workers.end()) return false;
  fired.job = worker->second.job;
  return rule->job.empty() || rule->job == fired.job;
}

}  // namespace neurontrace
