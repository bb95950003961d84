// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <utility>

#include "aggregator/session/coordinator.h"
#include "lib/base/post_and_wait.h"
#include "lib/base/task_runner.h"

namespace neurontrace {

// Lets calls, which run on threads of gRPC, use the coordinator on its sequence.
class SessionSequence {
 public:
  // Both must outlive this.
  SessionSequence(TaskRunner& sequence, Coordinator& coordinator)
      : sequence_(sequence), coordinator_(coordinator) {}

  // Runs `function` on the sequence, waits, and returns its result. The reference that `function`
  // gets must not be kept; what it captures by reference stays valid, because this waits. Fails as
  // PostAndWait does, also if the sequence does not get to it within kTimeout. Never called on the
  // sequence itself.
  template <typename Function>
  auto Run(Function function) const {
    return PostAndWait(sequence_, "the aggregator's sessions", kTimeout,
                       [&] { return function(coordinator_); });
  }

 private:
  // Longer than any regular task of the sequence; a call that waits for it in vain would block one
  // of gRPC's threads.
  static constexpr std::chrono::seconds kTimeout{10};

  TaskRunner& sequence_;
  Coordinator& coordinator_;
};

}  // namespace neurontrace
