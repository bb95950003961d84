// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// Recognises sequence numbers of a key that were seen before. Each is new once, in whatever order
// they come; numbers kWidth or more behind the highest count as seen. A plain value.
class ReplayWindow {
 public:
  static constexpr uint64_t kWidth = 64;
  // Returns true the first time that a number is passed, and records it.
  bool TakeNew(uint64_t sequence);

 private:
  // The highest number so far. At first it is 0 and no bit is set, so that 0 itself is new once.
  uint64_t highest_ = 0;
  uint64_t seen_ = 0;  // bit i: highest_ - i has been
};

}  // namespace neurontrace
