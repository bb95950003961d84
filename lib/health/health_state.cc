// SPDX-License-Identifier: Apache-2.0
#include "lib/health/health_state.h"

#include <algorithm>
#include <utility>

namespace neurontrace {

void HealthState::Declare(const std::string& name, Severity severity, const std::string& reason) {
  const MutexLock lock(mutex_);
  // A readiness condition starts as false: a probe before the daemon has set it must not see a
  // ready process.
  conditions_[name] = {severity, severity == Severity::kLiveness, reason, nullptr};
}

void HealthState::Watch(const std::string& name, Severity severity,
                        std::function<std::string()> look) {
  const MutexLock lock(mutex_);
  conditions_[name] = {severity, true, "", std::move(look)};
}

HealthState::View HealthState::ReadView(const std::string& name, const Condition& condition) const {
  // The reason of a watched condition is computed at each request, under the lock: `look` must not
  // call back.
  if (!condition.look) return {name, condition.severity, condition.good, condition.reason};
  std::string reason = condition.look();
  return {name, condition.severity, reason.empty(), std::move(reason)};
}

void HealthState::Set(const std::string& name, bool good, const std::string& reason) {
  const MutexLock lock(mutex_);
  const auto it = conditions_.find(name);
  // Only declared conditions exist, so that /readyz lists them from the start.
  if (it == conditions_.end()) return;
  it->second.good = good;
  it->second.reason = reason;
}

bool HealthState::live() const {
  const std::vector<View> views = conditions();
  return std::all_of(views.begin(), views.end(), [](const View& view) {
    return view.good || view.severity != Severity::kLiveness;
  });
}

bool HealthState::ready() const {
  const std::vector<View> views = conditions();
  return std::all_of(views.begin(), views.end(), [](const View& view) { return view.good; });
}

std::string HealthState::Describe(bool liveness_only) const {
  std::string text;
  for (const View& view : conditions()) {
    if (liveness_only && view.severity != Severity::kLiveness) continue;
    text += view.good ? "ok " + view.name + "\n" : "NOT " + view.name + ": " + view.reason + "\n";
  }
  // A process without conditions is alive.
  return text.empty() ? "ok\n" : text;
}

std::vector<HealthState::View> HealthState::conditions() const {
  const MutexLock lock(mutex_);
  std::vector<View> views;
  views.reserve(conditions_.size());
  for (const auto& [name, condition] : conditions_) views.push_back(ReadView(name, condition));
  return views;
}

}  // namespace neurontrace
