// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "lib/trace/capture_record.h"

namespace neurontrace {

// Finds the execution at which all cores of a capture can begin together: one that no core will
// have reached when its agent gets the order. Reads the newest execution that workers report while
// their events are held back. A plain state machine on the coordinator's sequence; time is passed
// in.
class ExecutionStart {
 public:
  // How long to wait for workers that report no execution after others have.
  static constexpr uint64_t kPatienceNs = 2'000'000'000;

  // Returns the execution number once it can be chosen: every recording worker has reported
  // executions for 200 ms, or some have and the others were waited for. The number is the highest
  // one so far plus twice as many as run in 200 ms, at least two.
  std::optional<uint64_t> Choose(const CaptureRecord& record, uint64_t now_monotonic_ns);

 private:
  uint64_t first_seen_ns_ = 0;  // monotonic; 0: no worker has reported an execution
  uint64_t first_seen_ = 0;     // the highest number at that time
};

}  // namespace neurontrace
