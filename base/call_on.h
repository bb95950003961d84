// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/task_runner.h"

namespace neurontrace {

// Runs `function` on the sequence of `runner`, and waits on the calling thread, which is another,
// for what it returns. Nothing: its turn had not come within `patience`, and it will not be run any
// more. What it refers to has to outlive the call alone.
template <typename Function>
auto CallOn(TaskRunner& runner, std::chrono::milliseconds patience, Function function)
    -> std::optional<decltype(function())> {
  using Result = decltype(function());
  struct Call {
    std::mutex mutex;
    bool given_up = false;  // guarded by mutex
    std::promise<Result> result;
  };
  const auto call = std::make_shared<Call>();
  auto waiting = call->result.get_future();
  runner.PostTask([call, &function] {
    const std::lock_guard lock(call->mutex);
    if (!call->given_up) call->result.set_value(function());
  });
  if (waiting.wait_for(patience) != std::future_status::ready) {
    const std::lock_guard lock(call->mutex);
    call->given_up = true;
    // It may have run while the lock was waited for.
    if (waiting.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return std::nullopt;
  }
  return waiting.get();
}

}  // namespace neurontrace
