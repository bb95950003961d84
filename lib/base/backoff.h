// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lib/base/random.h"

namespace neurontrace {

// How long to wait before the next try: exponential backoff with jitter. Each delay is twice the
// one before, up to a maximum, less a random share of up to a quarter, so that many clients of one
// lost peer do not return at the same moment. Holds no timer: the caller waits. One thread.
class Backoff {
 public:
  // `random` must outlive the object. The first delay is at most `first_ns`, the longest at most
  // `longest_ns`.
  Backoff(Random& random, uint64_t first_ns, uint64_t longest_ns)
      : random_(random), first_ns_(first_ns), longest_ns_(longest_ns), next_ns_(first_ns) {}

  // Returns the delay before the next try, in ns, and doubles the one after it.
  uint64_t NextDelayNs();
  // Called after a success: the next delay is the first one again.
  void Reset() { next_ns_ = first_ns_; }

 private:
  Random& random_;
  uint64_t first_ns_;
  uint64_t longest_ns_;
  uint64_t next_ns_;  // before the jitter
};

}  // namespace neurontrace
