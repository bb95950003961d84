// SPDX-License-Identifier: Apache-2.0
#include "aggregator/triggers/trigger_incident.h"

#include <fmt/format.h>

#include "base/clean_text.h"
#include "trace/trigger_limits.h"

namespace neurontrace {
namespace {

// So that the number of the others fits behind it.
constexpr size_t kFirstBytesMax = limits::kDetailBytesMax - 64;

}  // namespace

TriggerIncident::TriggerIncident(const TriggerFired& first)
    : job_(first.job), first_(CleanText(first.cause, kFirstBytesMax)) {
  workers_.insert(first.worker);
}

void TriggerIncident::Add(const TriggerFired& fired) {
  if (workers_.contains(fired.worker)) return;
  if (workers_.size() >= limits::kTriggerIncidentWorkersMax) {
    has_more_ = true;
    return;
  }
  workers_.insert(fired.worker);
}

std::string TriggerIncident::Cause() const {
  const size_t others = workers_.size() - 1;
  if (others == 0) return first_;
  return fmt::format("{} (and {}{} more)", first_, others, has_more_ ? " or" : "");
}

}  // namespace neurontrace
