// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "lib/base/task_runner.h"

namespace neurontrace {

// Ends an operation that blocks a thread and depends on a peer once that peer makes too little
// progress: fewer than `least` units in a period. The first period begins at construction. The end
// comes after one period at the earliest, and after two without any progress at the latest. Any
// thread.
class StallWatch {
 public:
  // The caller decides what a unit of progress is.
  struct Options {
    uint64_t period_ns = 0;
    uint64_t least = 1;
  };

  // Calls `end` at most once, on `runner`, and never after the destructor has returned. `end` must
  // not block. `runner` must outlive this.
  StallWatch(TaskRunner& runner, Options options, std::function<void()> end);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  // Reports `units` of progress. Called on the blocked thread between two operations.
  void Progress(uint64_t units);
  // Returns whether `end` was called.
  bool stalled() const;

 private:
  struct State;
  // Ends the operation or schedules the next check. Runs on `runner`.
  static void Check(TaskRunner& runner, const std::shared_ptr<State>& state);
  static void CheckLater(TaskRunner& runner, const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
};

}  // namespace neurontrace
