// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trace/worker_info.h"

namespace neurontrace {

// States in which a worker cannot record, which say why it did not.
constexpr bool IsObstacle(WorkerState state) {
  return state == WorkerState::kNotInitialised || state == WorkerState::kBusyOtherProfiler ||
         state == WorkerState::kRuntimeTooOld || state == WorkerState::kClosed ||
         state == WorkerState::kFailed;
}

// A process that ends does not make its earlier reason untrue.
constexpr WorkerState Obstacle(WorkerState known, WorkerState now) {
  if (!IsObstacle(now) || (IsObstacle(known) && now == WorkerState::kClosed)) return known;
  return now;
}

}  // namespace neurontrace
