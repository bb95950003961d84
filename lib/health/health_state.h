// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lib/base/mutex.h"

namespace neurontrace {

// The state of a process: named conditions, each true or false with a reason. Ready when
// every condition is true; alive as long as it answers and no condition was declared fatal. Any
// thread.
class HealthState {
 public:
  enum class Severity { kReadiness, kLiveness };

  // Declares a condition: readiness is false until set, liveness is true until set. Readiness
  // conditions decide /readyz, liveness conditions /healthz and /readyz. `reason` says why it does
  // not hold yet.
  void Declare(const std::string& name, Severity severity, const std::string& reason);
  void Set(const std::string& name, bool good, const std::string& reason = "");
  // Declares a condition that is looked at whenever somebody asks: `look` returns why it does not
  // hold, nothing while it does. Any thread; quick, and asks nothing of this.
  void Watch(const std::string& name, Severity severity, std::function<std::string()> look);

  bool live() const;
  bool ready() const;
  // One line a condition, "ok name" or "NOT name: reason"; liveness conditions alone with
  // `liveness_only`.
  std::string Describe(bool liveness_only) const;

  struct View {
    std::string name;
    Severity severity;
    bool good;
    std::string reason;
  };
  std::vector<View> conditions() const;  // by name

 private:
  struct Condition {
    Severity severity;
    bool good;
    std::string reason;
    std::function<std::string()> look;  // empty: as it was set
  };

  View Look(const std::string& name, const Condition& condition) const;

  mutable Mutex mutex_;
  std::map<std::string, Condition> conditions_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
