// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lib/trace/capture_record.h"

namespace neurontrace {

// Of a worker's part in a capture nothing more comes.
inline bool IsFinal(CaptureWorkerState state) {
  return state == CaptureWorkerState::kComplete || state == CaptureWorkerState::kRefused ||
         state == CaptureWorkerState::kLost;
}

// How many of the workers that a capture selects are ready to begin, and what keeps the others.
// Framework files are nobody's but their own: they are not counted.
struct ArmingTally {
  uint32_t selected = 0;
  uint32_t armed = 0;
  std::map<CaptureObstacle, uint32_t> obstacles;  // of the others

  // Whether the capture may begin: with as many as it requires, one at least. A standing capture
  // waits for its workers, and one without the runtime's events has none.
  bool IsEnoughFor(const CaptureSpec& spec) const;
  // Why it may not, for people.
  std::string WhyNotEnough(const CaptureSpec& spec) const;
};

// Of a record in which every selected worker stands. Pure.
ArmingTally Tally(const CaptureRecord& record);

// How long after the decision a capture begins: long enough for the slowest agent to hear of it,
// twice as long as its answer took, and for the record to be written before.
uint64_t BeginLeadNs(uint64_t slowest_answer_ns, uint64_t record_write_ns);

}  // namespace neurontrace
