// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "aggregator/session/capture_session.h"
#include "lib/trace/capture_record.h"

namespace neurontrace {

// Finds when a capture by executions is over: when every worker that can get there is behind its
// last execution, and also when none will. A plain state machine; time is passed in.
class ExecutionStopPolicy {
 public:
  // Where all others are behind the last one, workers that tell of no execution, or have not begun,
  // are waited for so long.
  static constexpr uint64_t kStragglerNs = 10'000'000'000;
  // After so long without a further execution of any worker none is expected any more. Longer than
  // loading a model takes.
  static constexpr uint64_t kStandstillNs = 600'000'000'000;

  // Nothing: it goes on. Else it is over; the words say why it is before all were behind its last
  // execution, empty where they were. Of a capture that has no end by executions: nothing.
  std::optional<std::string> Check(const CaptureRecord& record, const SessionTime& now);

 private:
  uint64_t progress_ = 0;           // told so far, over all workers
  uint64_t progress_since_ns_ = 0;  // monotonic; 0: not looked at yet
  uint64_t straggling_since_ns_ = 0;
};

// Whether a worker has recorded the first of its executions.
bool HasReachedExecutions(const CaptureRecord& record);

}  // namespace neurontrace
