// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lib/base/mutex.h"

namespace neurontrace {

// The state of a process: named conditions, each true or false with a reason. The process is ready
// if every condition is true, and alive if every liveness condition is. Owned by main; the parts of
// the daemon set their conditions, HealthServer and DaemonMetrics read them. Any thread.
class HealthState {
 public:
  // kLiveness is for faults that only a restart repairs, as an orchestrator kills a process that is
  // not alive.
  enum class Severity { kReadiness, kLiveness };

  // Declares a condition. A readiness condition is false until it is set, a liveness condition
  // true. Readiness conditions decide /readyz, liveness conditions /healthz and /readyz. `reason`
  // explains why it does not hold yet.
  void Declare(const std::string& name, Severity severity, const std::string& reason);
  // Sets a declared condition; unknown names are ignored. `reason` is shown while it is false.
  void Set(const std::string& name, bool good, const std::string& reason = "");
  // Declares a condition that is evaluated for each request: `look` returns why it does not hold,
  // or "". It is called on any thread under a lock, must be fast and must not call this object.
  void Watch(const std::string& name, Severity severity, std::function<std::string()> look);

  // Return whether all liveness conditions, or all conditions, are true. Evaluate the watched ones.
  bool live() const;
  bool ready() const;
  // Returns one line for each condition, "ok name" or "NOT name: reason"; only liveness conditions
  // with `liveness_only`.
  std::string Describe(bool liveness_only) const;

  // A condition at one moment.
  struct View {
    std::string name;
    Severity severity;
    bool good;
    std::string reason;
  };
  // Returns all conditions, sorted by name.
  std::vector<View> conditions() const;  // by name

 private:
  // The last state of a condition, or the function that evaluates it.
  struct Condition {
    Severity severity;
    bool good;
    std::string reason;
    std::function<std::string()> look;  // empty: as it was set
  };

  // Evaluates a condition. Called with the lock.
  View ReadView(const std::string& name, const Condition& condition) const;

  mutable Mutex mutex_;
  std::map<std::string, Condition> conditions_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
