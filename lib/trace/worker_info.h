// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/trace/capture_spec.h"
#include "lib/trace/framework_trace.h"
#include "lib/trace/ids.h"
#include "lib/trace/loss.h"
#include "lib/trace/rank_evidence.h"
#include "lib/trace/remark.h"

namespace neurontrace {

// The state of a worker as its agent reports it; docs/developer/worker_states.md has the
// transitions. Values of both enums are on the wire and equal those of neurontrace.v1: never change
// one.
enum class WorkerState : uint8_t {
  kUnspecified = 0,
  // No nrt_init has been seen.
  kNotInitialised = 1,
  kIdle = 2,
  kStreaming = 3,
  kBusyOtherProfiler = 4,
  // The runtime lacks nrt_sys_trace_fetch_events.
  kRuntimeTooOld = 5,
  // After nrt_close, or the process has ended.
  kClosed = 6,
  // The runtime refused; `detail` explains it.
  kFailed = 7,
  kNoTap = 8,  // it uses the runtime, and has no tap loaded
};
// The state of a worker's part in a capture.
enum class CaptureWorkerState : uint8_t {
  kUnspecified = 0,
  kStarting = 1,
  kRecording = 2,
  // The last events are being sent and stored.
  kStopping = 3,
  // Everything that was read is stored.
  kComplete = 4,
  // It could not take part: see CaptureObstacle.
  kRefused = 5,
  // It ended while it recorded, or one of its streams was given up. What was drained is stored.
  kLost = 6,
  // It can begin once it is ordered to.
  kArmed = 7,
  kSuspended = 8,  // a standing capture, while another capture records the worker
};
// Why a worker does not take part. Values as above.
enum class CaptureObstacle : uint8_t {
  kNone = 0,
  kOtherProfiler = 1,
  kRuntimeTooOld = 2,
  kNoTap = 3,
  kNotInitialised = 4,
  kAgentLost = 5,
  kOtherCapture = 6,
  kNoEventType = 7,  // its runtime knows none of the selected event types
  kRuntimeRefused = 8,
  kNotArmed = 9,  // a snapshot: no flight recorder had armed its rings
  kEnded = 10,    // the process ended first
  kNoAnswer = 11,
};

// Returns an obstacle as text for tables, messages and labels of metrics. Empty for kNone. Pure.
constexpr std::string_view ToString(CaptureObstacle obstacle) {
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

// A logical core of a worker.
struct CoreInfo {
  uint32_t nc_idx = 0;
  std::vector<RankEvidence> rank_evidence;  // best first
  friend bool operator==(const CoreInfo&, const CoreInfo&) = default;
};

// One worker as its agent knows it: the fields of neurontrace.v1.WorkerInventory. A plain value.
struct WorkerInfo {
  WorkerIdentity identity;
  WorkerState state = WorkerState::kUnspecified;
  std::string detail;
  std::string command;
  // The key of its job; empty: unknown.
  std::string job;
  std::vector<CoreInfo> cores;
  std::string runtime_version;
  // Whether the pid is the tap's own claim, because the kernel could not provide it.
  bool pid_claimed = false;
  std::vector<std::string> warnings;
  std::vector<std::string> event_types;  // types that its runtime knows; empty: unknown
  // Sorted. Keys: job, slurm, torchelastic, comm, namespace, pod, container, uid, label:KEY.
  std::vector<KeyValue> job_facts;
  CaptureId tap_capture;  // the capture that its tap records at present; empty: none
  friend bool operator==(const WorkerInfo&, const WorkerInfo&) = default;
};

// The result of one worker, or of an instance's framework files, in one capture: the fields of
// neurontrace.v1.CaptureWorkerStatus. A plain value.
struct CaptureWorkerStatus {
  CaptureId capture_id;
  WorkerIdentity worker;
  CaptureWorkerState state = CaptureWorkerState::kUnspecified;
  std::string detail;
  // Events decoded from its sources so far; those of them that the aggregator has acknowledged; and
  // all counted losses.
  uint64_t events_read = 0;
  uint64_t events_stored = 0;
  uint64_t events_lost = 0;
  bool events_lost_unknown = false;  // in addition, an unknown number of events was lost
  // Whether this is about the framework files of an instance rather than a process with a tap.
  bool framework = false;
  uint32_t streams = 0;
  // Set by the aggregator: the state of the worker when it last did not record.
  WorkerState worker_state = WorkerState::kUnspecified;
  CaptureObstacle obstacle = CaptureObstacle::kNone;
  uint64_t bytes_read = 0;  // of chunks, encoded
  uint64_t begun_realtime_ns =
      0;                        // by its host's clock; 0: it has not begun, or the time is unknown
  int64_t begin_offset_ns = 0;  // how much later than planned; only with begun_as_planned
  bool begun_as_planned = false;  // it had been given a time
  // Of its cores that ran executions: the lowest and the highest of the first that each recorded,
  // and the lowest and the highest of the newest that each was seen to run. 0: none, and for the
  // two in the middle also not known of every core, as after a restart of the agent.
  uint64_t first_execution = 0;
  uint64_t highest_first_execution = 0;
  uint64_t lowest_newest_execution = 0;
  uint64_t newest_execution = 0;
  uint32_t cores_without_execution = 0;  // cores that ran executions and recorded none of them
  uint64_t reaches_back_ns = 0;  // kSnapshot: from the cut to its youngest core's first event
  bool joined_late = false;      // began after the others
  std::vector<Remark> remarks;   // remarks that belong to no stream
  // Of framework files: the traces that workers of the instance were asked for, in the order of the
  // workers; at most limits::kFrameworkTracesMax.
  std::vector<FrameworkTrace> framework_traces;
  friend bool operator==(const CaptureWorkerStatus&, const CaptureWorkerStatus&) = default;
};

// Returns whether both report the same of the executions of the worker's cores. Pure.
inline bool HasSameExecutions(const CaptureWorkerStatus& a, const CaptureWorkerStatus& b) {
  return a.first_execution == b.first_execution &&
         a.highest_first_execution == b.highest_first_execution &&
         a.lowest_newest_execution == b.lowest_newest_execution &&
         a.newest_execution == b.newest_execution &&
         a.cores_without_execution == b.cores_without_execution;
}

}  // namespace neurontrace
