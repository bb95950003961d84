// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace neurontrace {

// Measures for how long the aggregator has acknowledged nothing while chunks wait for it: it is
// slow, holds this agent back by flow control, or is not reached. A plain value.
class AckWatchdog {
 public:
  // To be called periodically. `answers`: the number of acknowledgements so far; `chunks`: those
  // without one, sent or not. `monotonic_ns` never goes back.
  void Poll(uint64_t monotonic_ns, uint64_t answers, size_t chunks) {
    // How long chunks had waited before the first call is not known.
    if (!since_ns_ || answers != answers_ || chunks == 0) since_ns_ = monotonic_ns;
    answers_ = answers;
    waited_ns_ = monotonic_ns - *since_ns_;
  }

  // Returns nanoseconds; 0 while nothing waits.
  uint64_t waited_ns() const { return waited_ns_; }  // when it was last looked

 private:
  uint64_t answers_ = 0;
  std::optional<uint64_t> since_ns_;
  uint64_t waited_ns_ = 0;
};

}  // namespace neurontrace
