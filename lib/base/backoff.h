// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lib/base/random.h"

namespace neurontrace {

// How long to wait before the next try: twice as long each time up to a maximum, each with up to a
// quarter taken off at random, so that many who lost the same peer do not come back at once. A
// plain value; one thread.
class Backoff {
 public:
  // `random` outlives the object.
  Backoff(Random& random, uint64_t first_ns, uint64_t longest_ns)
      : random_(random), first_ns_(first_ns), longest_ns_(longest_ns), next_ns_(first_ns) {}

  uint64_t NextDelayNs();
  void Reset() { next_ns_ = first_ns_; }  // after a success

 private:
  Random& random_;
  uint64_t first_ns_;
  uint64_t longest_ns_;
  uint64_t next_ns_;
};

}  // namespace neurontrace
