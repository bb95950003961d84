// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "base/task_runner.h"
#include "base/unique_fd.h"

namespace neurontrace {

// Tells at once when somebody sets CLOCK_REALTIME, by whatever call: a timer for the end of time
// that the kernel cancels then (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET). Needs no privilege.
// Lives on the sequence of its runner, which outlives it.
class RealtimeStepWatch {
 public:
  // UNAVAILABLE where the kernel gives no such timer.
  static absl::StatusOr<std::unique_ptr<RealtimeStepWatch>> Start(TaskRunner& runner,
                                                                  std::function<void()> on_step);
  ~RealtimeStepWatch();
  RealtimeStepWatch(const RealtimeStepWatch&) = delete;
  RealtimeStepWatch& operator=(const RealtimeStepWatch&) = delete;

 private:
  RealtimeStepWatch(TaskRunner& runner, UniqueFd timer)
      : runner_(runner), timer_(std::move(timer)) {}

  TaskRunner& runner_;
  const UniqueFd timer_;
};

}  // namespace neurontrace
