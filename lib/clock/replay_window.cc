// SPDX-License-Identifier: Apache-2.0
#include "lib/clock/replay_window.h"

namespace neurontrace {

// The algorithm is the anti-replay window of IPsec (RFC 4303, section 3.4.3).
bool ReplayWindow::TakeNew(uint64_t sequence) {
  if (sequence > highest_) {
    const uint64_t ahead = sequence - highest_;
    // Shifting a 64-bit value by 64 or more is undefined.
    seen_ = ahead >= kWidth ? 0 : seen_ << ahead;
    seen_ |= 1;
    highest_ = sequence;
    return true;
  }
  const uint64_t behind = highest_ - sequence;
  if (behind >= kWidth) return false;
  const uint64_t bit = uint64_t{1} << behind;
  if ((seen_ & bit) != 0) return false;
  seen_ |= bit;
  return true;
}

}  // namespace neurontrace
