// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
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

// Returns whether this is a final state: the capture's record changes only by what late agents
// bring.
constexpr bool HasEnded(CaptureState state) {
  return state == CaptureState::kComplete || state == CaptureState::kIncomplete ||
         state == CaptureState::kNotBegun;
}

// One agent's part in a capture. A plain value.
struct CaptureAgentPart {
  std::string agent_id;
  std::string instance_id;
  uint32_t matched_workers = 0;
  bool reported = false;                // it has reported how many of its workers match
  bool finished = false;                // stopped, and every chunk of it is stored
  bool vanished = false;                // the capture ended without it; it may still finish late
  bool given_up = false;                // and is no longer waited for
  uint64_t away_since_realtime_ns = 0;  // 0 while connected
  friend bool operator==(const CaptureAgentPart&, const CaptureAgentPart&) = default;
};

// Why a worker that existed while a capture ran has no part in it. Values are on the wire and in
// stores.
enum class NonParticipantReason : uint8_t {
  kUnspecified = 0,
  kNotSelected = 1,
  kAgentAway = 2,    // the agent of its instance was not connected
  kNotReported = 3,  // selected, but its agent has not reported it
};
// A worker without a part in a capture, with the reason.
struct NonParticipant {
  WorkerIdentity worker;  // instance_id alone with kAgentAway
  std::string agent_id;
  NonParticipantReason reason = NonParticipantReason::kUnspecified;
  WorkerState state = WorkerState::kUnspecified;
  std::string detail;
  friend bool operator==(const NonParticipant&, const NonParticipant&) = default;
};

// A capture as the store keeps it: everything about it except its streams. A plain value; the
// limits of its lists are in limits.h.
struct CaptureRecord {
  CaptureId id;
  CaptureSpec spec;
  CaptureState state = CaptureState::kUnspecified;
  uint64_t started_realtime_ns = 0;
  uint64_t stopped_realtime_ns = 0;  // when agents were told to stop recording; 0 before
  uint64_t ended_realtime_ns = 0;    // when it became complete or incomplete; 0 before
  // Who takes part, and which workers do not.
  std::vector<CaptureAgentPart> agents;
  std::vector<CaptureWorkerStatus> workers;
  std::vector<NonParticipant> non_participants;
  std::vector<std::string> warnings;
  std::vector<std::string> end_warnings;  // added at its end, and again when a late agent finishes
  std::optional<CaptureBegin> begin;      // the order to all agents, except host_raw_ns
  uint64_t armed_realtime_ns = 0;         // when the last answer had come or was no longer awaited
  // What people add to the capture after its start; see aggregator/session/capture_update.h.
  bool starred = false;
  std::vector<std::string> tags;  // sorted, each once; in addition to spec.labels
  friend bool operator==(const CaptureRecord&, const CaptureRecord&) = default;
};

// Returns the latest moment of a capture's life, from which Retention::duration_ns counts once it
// has ended. By the aggregator's clock.
constexpr uint64_t LatestMomentNs(const CaptureRecord& record) {
  return std::max(
      {record.started_realtime_ns, record.stopped_realtime_ns, record.ended_realtime_ns});
}

}  // namespace neurontrace
