// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/ids.h"
#include "trace/loss.h"
#include "trace/rank_evidence.h"

namespace neurontrace {

// Values of both enums are on the wire and equal those of neurontrace.v1: never change one.
enum class WorkerState : uint8_t {
  kUnspecified = 0,
  kNotInitialised = 1,
  kIdle = 2,
  kStreaming = 3,
  kBusyOtherProfiler = 4,
  kRuntimeTooOld = 5,
  kClosed = 6,
  kFailed = 7,
};
enum class CaptureWorkerState : uint8_t {
  kUnspecified = 0,
  kStarting = 1,
  kRecording = 2,
  kStopping = 3,
  kComplete = 4,
  kRefused = 5,
  kLost = 6,
};

struct CoreInfo {
  uint32_t nc_idx = 0;
  std::vector<RankEvidence> rank_evidence;  // best first
  friend bool operator==(const CoreInfo&, const CoreInfo&) = default;
};

// One worker as its agent knows it: the fields of neurontrace.v1.WorkerInventory.
struct WorkerInfo {
  WorkerIdentity identity;
  WorkerState state = WorkerState::kUnspecified;
  std::string detail;
  std::string command;
  std::string job;
  std::vector<CoreInfo> cores;
  std::string runtime_version;
  bool pid_claimed = false;
  std::vector<std::string> warnings;
  friend bool operator==(const WorkerInfo&, const WorkerInfo&) = default;
};

// What came of one worker, or of an instance's framework files, in one capture: the fields of
// neurontrace.v1.CaptureWorkerStatus.
struct CaptureWorkerStatus {
  CaptureId capture_id;
  WorkerIdentity worker;
  CaptureWorkerState state = CaptureWorkerState::kUnspecified;
  std::string detail;
  uint64_t events_read = 0;
  uint64_t events_stored = 0;
  uint64_t events_lost = 0;
  bool framework = false;
  uint32_t streams = 0;
  // Set by the aggregator: how the worker was when it last did not record.
  WorkerState worker_state = WorkerState::kUnspecified;
  friend bool operator==(const CaptureWorkerStatus&, const CaptureWorkerStatus&) = default;
};

}  // namespace neurontrace
