// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/capture_spec.h"
#include "trace/ids.h"
#include "trace/worker_info.h"

namespace neurontrace {

// Values are on the wire and in stores and equal those of neurontrace.v1: never change one.
enum class CaptureState : uint8_t {
  kUnspecified = 0,
  kRecording = 1,
  kStopping = 2,    // waiting until every chunk is stored
  kComplete = 3,    // every worker delivered everything it read
  kIncomplete = 4,  // ended, but see the workers and warnings
};

constexpr bool HasEnded(CaptureState state) {
  return state == CaptureState::kComplete || state == CaptureState::kIncomplete;
}

// One agent's part in a capture.
struct CaptureAgentPart {
  std::string agent_id;
  std::string instance_id;
  uint32_t matched_workers = 0;
  bool reported = false;  // it has said how many of its workers match
  bool finished = false;  // stopped, and every chunk of it is stored
  bool vanished = false;  // given up on: the capture ended without it
  friend bool operator==(const CaptureAgentPart&, const CaptureAgentPart&) = default;
};

// A capture as it is remembered: everything about it but its streams.
struct CaptureRecord {
  CaptureId id;
  CaptureSpec spec;
  CaptureState state = CaptureState::kUnspecified;
  uint64_t started_realtime_ns = 0;
  uint64_t stopped_realtime_ns = 0;  // when recording was told to stop; 0 before
  uint64_t ended_realtime_ns = 0;    // when it became complete or incomplete; 0 before
  std::vector<CaptureAgentPart> agents;
  std::vector<CaptureWorkerStatus> workers;
  std::vector<std::string> warnings;
  friend bool operator==(const CaptureRecord&, const CaptureRecord&) = default;
};

}  // namespace neurontrace
