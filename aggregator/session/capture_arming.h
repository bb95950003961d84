// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lib/trace/capture_record.h"

namespace neurontrace {

// Returns whether a worker's part in a capture is over: no further report about it is expected.
inline bool IsFinal(CaptureWorkerState state) {
  return state == CaptureWorkerState::kComplete || state == CaptureWorkerState::kRefused ||
         state == CaptureWorkerState::kLost;
}

// How many of the workers that a capture selects are ready to begin, and why the others are not.
// Framework files belong to no worker and are not counted. A plain value.
struct ArmingTally {
  uint32_t selected = 0;
  uint32_t armed = 0;
  std::map<CaptureObstacle, uint32_t> obstacles;  // of the selected ones that are not armed

  // Returns whether the capture may begin: as many are armed as it requires, and at least one. A
  // standing capture waits for its workers, and one without the runtime's events has none.
  bool IsEnoughFor(const CaptureSpec& spec) const;
  // Explains, for people, why it may not begin.
  std::string NotEnoughReason(const CaptureSpec& spec) const;
};

// Counts a record in which every selected worker has a status. Pure.
ArmingTally Tally(const CaptureRecord& record);

// Returns how many ns after the decision a capture begins: enough for the slowest agent to receive
// the order, estimated as twice the time of its answer, and for the record to be written before.
// Between limits::kBeginLeadMinNs and kBeginLeadMaxNs. Pure.
uint64_t BeginLeadNs(uint64_t slowest_answer_ns, uint64_t record_write_ns);

// Returns how many ns after the decision a capture begins at the earliest, so that frameworks can
// receive the order to record from that moment: limits::kFrameworkLeadNs, or 0 if none is asked for
// that. Pure.
uint64_t FrameworkLeadNs(const CaptureSpec& spec);

}  // namespace neurontrace
