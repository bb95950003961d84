// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "lib/trace/capture_record.h"

namespace neurontrace {

// Finds the execution at which all cores of a capture can begin together: one that no core has
// reached when its agent is told of it. Reads what workers report as their newest execution while
// events are held back. A plain state machine; time is passed in.
class ExecutionStart {
 public:
  // How long workers that report no execution are waited for after others have.
  static constexpr uint64_t kPatienceNs = 2'000'000'000;

  // Returns the execution number as soon as it can be chosen: when every worker that records has
  // reported executions twice, or some have and the others were waited for. It is the highest
  // number so far plus as many as take 200 ms, at least two.
  std::optional<uint64_t> Choose(const CaptureRecord& record, uint64_t now_monotonic_ns);

 private:
  uint64_t first_seen_ns_ = 0;  // monotonic; 0: no worker has reported any
  uint64_t first_seen_ = 0;     // the highest then
};

}  // namespace neurontrace
