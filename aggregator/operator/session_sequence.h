// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <utility>

#include "aggregator/session/coordinator.h"
#include "lib/base/post_and_wait.h"
#include "lib/base/task_runner.h"

namespace neurontrace {

// Lets calls, which have threads of their own, use the coordinator on its sequence.
class SessionSequence {
 public:
  // Both outlive this.
  SessionSequence(TaskRunner& sequence, Coordinator& coordinator)
      : sequence_(sequence), coordinator_(coordinator) {}

  // Runs `function` on the sequence and returns its result; see PostAndWait for errors.
  template <typename Function>
  auto Run(Function function) const {
    return PostAndWait(sequence_, "the aggregator's sessions", kTimeout,
                       [&] { return function(coordinator_); });
  }

 private:
  static constexpr std::chrono::seconds kTimeout{10};

  TaskRunner& sequence_;
  Coordinator& coordinator_;
};

}  // namespace neurontrace
