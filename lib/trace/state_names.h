// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "lib/trace/capture_record.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/worker_info.h"

// The functions return the text of a state for people, the same in every table and message. A value
// of a later version is "not known"; an unknown mode of a capture is shown as "stream".
namespace neurontrace {

constexpr std::string_view ToString(WorkerState state) {
  switch (state) {
    case WorkerState::kUnspecified:
      break;
    case WorkerState::kNotInitialised:
      return "not initialised";
    case WorkerState::kIdle:
      return "ready";
    case WorkerState::kStreaming:
      return "recording";
    case WorkerState::kBusyOtherProfiler:
      return "busy: other profiler";
    case WorkerState::kRuntimeTooOld:
      return "runtime too old";
    case WorkerState::kClosed:
      return "closed";
    case WorkerState::kFailed:
      return "failed";
    case WorkerState::kNoTap:
      return "no tap";
  }
  return "not known";
}

constexpr std::string_view ToString(CaptureState state) {
  switch (state) {
    case CaptureState::kUnspecified:
      break;
    case CaptureState::kArming:
      return "arming";
    case CaptureState::kRecording:
      return "recording";
    case CaptureState::kStopping:
      return "stopping";
    case CaptureState::kComplete:
      return "complete";
    case CaptureState::kIncomplete:
      return "incomplete";
    case CaptureState::kNotBegun:
      return "not begun";
  }
  return "not known";
}

constexpr std::string_view ToString(CaptureMode mode) {
  switch (mode) {
    case CaptureMode::kStream:
      break;
    case CaptureMode::kFlightRecorder:
      return "flight recorder";
    case CaptureMode::kSnapshot:
      return "snapshot";
    case CaptureMode::kContinuous:
      return "continuous";
    case CaptureMode::kPreview:
      return "preview";
  }
  return "stream";
}

}  // namespace neurontrace
