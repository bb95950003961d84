// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "lib/trace/worker_info.h"

namespace neurontrace {

// Returns an obstacle as text for tables, messages and labels of metrics. Empty for kNone. Pure.
constexpr std::string_view WordsOf(CaptureObstacle obstacle) {
  switch (obstacle) {
    case CaptureObstacle::kNone:
      return "";
    case CaptureObstacle::kOtherProfiler:
      return "busy: other profiler";
    case CaptureObstacle::kRuntimeTooOld:
      return "runtime too old";
    case CaptureObstacle::kNoTap:
      return "no tap";
    case CaptureObstacle::kNotInitialised:
      return "not initialised";
    case CaptureObstacle::kAgentLost:
      return "agent lost";
    case CaptureObstacle::kOtherCapture:
      return "other capture";
    case CaptureObstacle::kNoEventType:
      return "no event type";
    case CaptureObstacle::kRuntimeRefused:
      return "runtime refused";
    case CaptureObstacle::kNotArmed:
      return "not armed";
    case CaptureObstacle::kEnded:
      return "ended";
    case CaptureObstacle::kNoAnswer:
      return "no answer";
  }
  return "";
}

// Returns why a worker in this state cannot record, or kNone if it can. Pure.
constexpr CaptureObstacle ObstacleOf(WorkerState state) {
  switch (state) {
    case WorkerState::kNotInitialised:
      return CaptureObstacle::kNotInitialised;
    case WorkerState::kBusyOtherProfiler:
      return CaptureObstacle::kOtherProfiler;
    case WorkerState::kRuntimeTooOld:
      return CaptureObstacle::kRuntimeTooOld;
    case WorkerState::kClosed:
      return CaptureObstacle::kEnded;
    case WorkerState::kFailed:
      return CaptureObstacle::kRuntimeRefused;
    case WorkerState::kNoTap:
      return CaptureObstacle::kNoTap;
    case WorkerState::kUnspecified:
    case WorkerState::kIdle:
    case WorkerState::kStreaming:
      return CaptureObstacle::kNone;
  }
  return CaptureObstacle::kNone;
}

}  // namespace neurontrace
