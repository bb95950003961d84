// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/trace/capture_begin.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// Values are on the wire and in stores and equal those of neurontrace.v1: never change one.
enum class CaptureState : uint8_t {
  kUnspecified = 0,
  kRecording = 1,
  kStopping = 2,    // waiting until every chunk is stored
  kComplete = 3,    // every worker delivered everything it read
  kIncomplete = 4,  // ended, but see the workers and warnings
  kArming = 5,      // asking who can take part
  kNotBegun = 6,    // ended: fewer were armed than it requires
};

constexpr bool HasEnded(CaptureState state) {
  return state == CaptureState::kComplete || state == CaptureState::kIncomplete ||
         state == CaptureState::kNotBegun;
}

// One agent's part in a capture.
struct CaptureAgentPart {
  std::string agent_id;
  std::string instance_id;
  uint32_t matched_workers = 0;
  bool reported = false;                // it has said how many of its workers match
  bool finished = false;                // stopped, and every chunk of it is stored
  bool vanished = false;                // the capture ended without it; it may still finish
  bool given_up = false;                // and is no longer waited for
  uint64_t away_since_realtime_ns = 0;  // 0 while connected
  friend bool operator==(const CaptureAgentPart&, const CaptureAgentPart&) = default;
};

// Why a worker that was there while a capture ran has no part in it.
enum class BystanderReason : uint8_t {
  kUnspecified = 0,
  kNotSelected = 1,
  kAgentAway = 2,    // the agent of its instance was not connected
  kNotReported = 3,  // selected, but its agent has said nothing of it
};
struct NonParticipant {
  WorkerIdentity worker;  // only the instance where the agent is away
  std::string agent_id;
  BystanderReason reason = BystanderReason::kUnspecified;
  WorkerState state = WorkerState::kUnspecified;
  std::string detail;
  friend bool operator==(const NonParticipant&, const NonParticipant&) = default;
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
  std::vector<NonParticipant> bystanders;
  std::vector<std::string> warnings;
  std::vector<std::string> end_warnings;  // said at its end, and again when a late agent finishes
  std::optional<CaptureBegin> begin;      // what all were told, but host_raw_ns; nothing before
  uint64_t armed_realtime_ns = 0;         // the last answer was there, or not waited for any more
  friend bool operator==(const CaptureRecord&, const CaptureRecord&) = default;
};

}  // namespace neurontrace
