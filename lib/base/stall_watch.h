// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "lib/base/task_runner.h"

namespace neurontrace {

// Ends something that blocks a thread and depends on a peer once that peer brings too little of it:
// fewer than `least` units of progress in a period. The first period begins at construction; so the
// end comes after one period at the earliest, and after two without any progress at the latest. Any
// thread.
class StallWatch {
 public:
  struct Options {
    uint64_t period_ns = 0;
    uint64_t least = 1;
  };

  // `end` is called at most once, on `runner`, which outlives this, and never once the destructor
  // has returned. It does not block.
  StallWatch(TaskRunner& runner, Options options, std::function<void()> end);
  ~StallWatch();
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  void Progress(uint64_t units);
  bool stalled() const;  // `end` was called

 private:
  struct State;
  static void Check(TaskRunner& runner, const std::shared_ptr<State>& state);
  static void CheckLater(TaskRunner& runner, const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
};

}  // namespace neurontrace
