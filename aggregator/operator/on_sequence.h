// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <future>

#include "base/task_runner.h"

namespace neurontrace {

// Runs `function` on the sequence and waits for what it returns.
template <typename Function>
auto OnSequence(TaskRunner& sequence, Function function) {
  std::promise<decltype(function())> result;
  auto waiting = result.get_future();
  sequence.PostTask([&] { result.set_value(function()); });
  return waiting.get();
}

}  // namespace neurontrace
