// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace neurontrace {

// For how long the aggregator has answered nothing while chunks wait for it: what says that it is
// slow, that its flow control holds us back, or that it is not reached. A plain value.
class AckWatchdog {
 public:
  // Now and then. `answers`: how many there were; `chunks`: those that are not answered, sent or
  // not.
  void Look(uint64_t monotonic_ns, uint64_t answers, size_t chunks) {
    // What was there before the first look has waited for nobody knows how long.
    if (!since_ns_ || answers != answers_ || chunks == 0) since_ns_ = monotonic_ns;
    answers_ = answers;
    waited_ns_ = monotonic_ns - *since_ns_;
  }

  uint64_t waited_ns() const { return waited_ns_; }  // when it was last looked

 private:
  uint64_t answers_ = 0;
  std::optional<uint64_t> since_ns_;
  uint64_t waited_ns_ = 0;
};

}  // namespace neurontrace
