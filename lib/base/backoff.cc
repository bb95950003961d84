// SPDX-License-Identifier: Apache-2.0
#include "lib/base/backoff.h"

#include <algorithm>
#include <cassert>

namespace neurontrace {

uint64_t Backoff::NextDelayNs() {
  assert(next_ns_ > 0 && next_ns_ <= longest_ns_);
  const uint64_t delay_ns = next_ns_;
  next_ns_ = std::min(2 * next_ns_, longest_ns_);
  // Jitter is subtracted, never added, so that `longest_ns` remains the longest delay.
  return delay_ns - random_.Next64() % (delay_ns / 4 + 1);
}

}  // namespace neurontrace
