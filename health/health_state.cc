// SPDX-License-Identifier: Apache-2.0
#include "health/health_state.h"

#include <algorithm>

namespace neurontrace {

void HealthState::Declare(const std::string& name, Severity severity, const std::string& reason) {
  std::lock_guard lock(mutex_);
  conditions_[name] = {severity, severity == Severity::kLiveness, reason};
}

void HealthState::Set(const std::string& name, bool good, const std::string& reason) {
  std::lock_guard lock(mutex_);
  const auto it = conditions_.find(name);
  if (it == conditions_.end()) return;
  it->second.good = good;
  it->second.reason = reason;
}

bool HealthState::live() const {
  std::lock_guard lock(mutex_);
  return std::all_of(conditions_.begin(), conditions_.end(), [](const auto& entry) {
    return entry.second.good || entry.second.severity != Severity::kLiveness;
  });
}

bool HealthState::ready() const {
  std::lock_guard lock(mutex_);
  return std::all_of(conditions_.begin(), conditions_.end(),
                     [](const auto& entry) { return entry.second.good; });
}

std::string HealthState::Describe(bool liveness_only) const {
  std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [name, condition] : conditions_) {
    if (liveness_only && condition.severity != Severity::kLiveness) continue;
    text += condition.good ? "ok " + name + "\n" : "NOT " + name + ": " + condition.reason + "\n";
  }
  return text.empty() ? "ok\n" : text;
}

std::vector<HealthState::View> HealthState::conditions() const {
  std::lock_guard lock(mutex_);
  std::vector<View> views;
  views.reserve(conditions_.size());
  for (const auto& [name, condition] : conditions_) {
    views.push_back({name, condition.severity, condition.good, condition.reason});
  }
  return views;
}

}  // namespace neurontrace
