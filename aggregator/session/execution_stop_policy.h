// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "aggregator/session/capture_session.h"
#include "lib/trace/capture_record.h"

namespace neurontrace {

// Finds when a capture by executions is over: every worker that can get there has passed its last
// execution, or no worker will. A plain state machine on the coordinator's sequence; time is passed
// in.
class ExecutionStopPolicy {
 public:
  // Once all others have passed the last execution, how long to wait for workers that report no
  // execution or have not begun.
  static constexpr uint64_t kStragglerNs = 10'000'000'000;
  // After this long without a further execution of any worker none is expected. Longer than loading
  // a model takes.
  static constexpr uint64_t kNoProgressNs = 600'000'000'000;

  // Returns nullopt while the capture continues, and for a capture without an end by executions.
  // Otherwise it is over; the text says why before all workers had passed the last execution, and
  // is empty if they had.
  std::optional<std::string> Check(const CaptureRecord& record, const SessionTime& now);

 private:
  uint64_t progress_ = 0;           // sum of the reported executions, see Measure
  uint64_t progress_since_ns_ = 0;  // monotonic; 0: Check was not called yet
  uint64_t straggling_since_ns_ = 0;
};

// Returns whether any worker has recorded the capture's first execution. Pure.
bool HasReachedExecutions(const CaptureRecord& record);

}  // namespace neurontrace
