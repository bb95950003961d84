// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trace/capture_record.h"

namespace neurontrace {

// Finds the execution at which all cores of a capture can begin together: one that none of them has
// reached when its agent hears of it. Fed with what workers report as their newest while events are
// held back. A plain state machine; time is passed in.
class ExecutionStart {
 public:
  // Nothing is worth waiting longer for than for workers that say nothing of executions.
  static constexpr uint64_t kPatienceNs = 2'000'000'000;

  // The number, once it can be said: when every worker that records has told of executions twice
  // (or of some, and the others were waited for), the highest and as many more as take 200 ms, two
  // at least.
  std::optional<uint64_t> Choose(const CaptureRecord& record, uint64_t now_monotonic_ns);

 private:
  uint64_t first_seen_ns_ = 0;  // monotonic; 0: nobody has told of any
  uint64_t first_seen_ = 0;     // the highest then
};

}  // namespace neurontrace
