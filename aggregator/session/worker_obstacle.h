// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trace/capture_obstacle.h"
#include "trace/worker_info.h"

namespace neurontrace {

// States in which a worker cannot record, which say why it did not.
constexpr bool IsObstacle(WorkerState state) { return ObstacleOf(state) != CaptureObstacle::kNone; }

// A process that ends does not make its earlier reason untrue.
constexpr WorkerState Obstacle(WorkerState known, WorkerState now) {
  if (!IsObstacle(now) || (IsObstacle(known) && now == WorkerState::kClosed)) return known;
  return now;
}

}  // namespace neurontrace
