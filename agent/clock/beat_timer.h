// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "base/task_runner.h"
#include "base/unique_fd.h"

namespace neurontrace {

// Calls back at a fixed beat (timerfd_create(2), CLOCK_MONOTONIC); beats that were missed are not
// made up for. Lives on the sequence of its runner, which outlives it.
class BeatTimer {
 public:
  // UNAVAILABLE where the kernel gives no timer.
  static absl::StatusOr<std::unique_ptr<BeatTimer>> Start(TaskRunner& runner, uint64_t interval_ns,
                                                          std::function<void()> on_beat);
  ~BeatTimer();
  BeatTimer(const BeatTimer&) = delete;
  BeatTimer& operator=(const BeatTimer&) = delete;

  int fd() const { return timer_.get(); }

 private:
  BeatTimer(TaskRunner& runner, UniqueFd timer) : runner_(runner), timer_(std::move(timer)) {}

  TaskRunner& runner_;
  const UniqueFd timer_;
};

}  // namespace neurontrace
