// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/mutex.h"
#include "lib/base/status.h"
#include "lib/base/task_runner.h"

namespace neurontrace {

// The type that PostAndWait returns for a function that returns `T`: StatusOr<T>, where a Status or
// StatusOr stays as it is and void becomes Status.
template <typename T>
struct PostedResult {
  using Type = absl::StatusOr<T>;
};
template <typename T>
struct PostedResult<absl::StatusOr<T>> {
  using Type = absl::StatusOr<T>;
};
template <>
struct PostedResult<absl::Status> {
  using Type = absl::Status;
};
template <>
struct PostedResult<void> {
  using Type = absl::Status;
};

// Runs `function` on the sequence of `runner` and returns its result. Called on any other thread:
// on the sequence itself it would wait for its own task. Fails with DEADLINE_EXCEEDED, naming
// `what`, if the function has not begun within `timeout`; it is then never run. If it has begun,
// its end is awaited without limit, so that it may refer to the caller's variables.
template <typename Function>
auto PostAndWait(TaskRunner& runner, std::string_view what, std::chrono::milliseconds timeout,
                 Function function) {
  using Value = decltype(function());
  using Result = typename PostedResult<Value>::Type;
  // Shared with the task, which may run long after this function has given up and returned.
  struct Call {
    Mutex mutex;
    CondVar done;
    bool given_up NT_GUARDED_BY(mutex) = false;
    std::optional<Result> result NT_GUARDED_BY(mutex);
  };
  const auto call = std::make_shared<Call>();
  runner.PostTask([call, &function] {
    // Holds the mutex while `function` runs: a caller whose timeout ends meanwhile blocks on the
    // mutex until it has finished. This is why `function`, captured by reference, is still alive.
    const MutexLock lock(call->mutex);
    if (call->given_up) return;
    if constexpr (std::is_void_v<Value>) {
      function();
      call->result.emplace(absl::OkStatus());
    } else {
      call->result.emplace(function());
    }
    call->done.NotifyOne();
  });
  const MutexLock lock(call->mutex);
  call->done.WaitFor(call->mutex, timeout,
                     [&]() NT_REQUIRES(call->mutex) { return call->result.has_value(); });
  // This thread holds the mutex again, so `function` has either finished or never begun. In the
  // second case the task finds given_up and does not run it.
  call->given_up = true;
  if (call->result) return *std::move(call->result);
  return Result(MakeStatus(absl::StatusCode::kDeadlineExceeded,
                           "{} did not answer within {:g} s; try again", what,
                           std::chrono::duration<double>(timeout).count()));
}

}  // namespace neurontrace
