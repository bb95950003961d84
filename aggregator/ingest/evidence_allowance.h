// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "lib/base/mutex.h"

namespace neurontrace {

// Limits how much clock evidence is stored of each instance, so that an agent that invents evidence
// cannot fill the store. A token bucket for each instance. Any thread.
class EvidenceAllowance {
 public:
  // Takes `bytes` at `now_ns`, which is monotonic. Fails with RESOURCE_EXHAUSTED, and takes
  // nothing, beyond limits::kClockHostBytesPerHourMax or kClockHostBytesAtOnceMax, or for a new
  // instance beyond limits::kClockHostsMax.
  absl::Status Take(const std::string& instance_id, size_t bytes, uint64_t now_ns);

 private:
  // Returns whether another instance can be counted. Removes instances whose whole allowance is
  // available again, since forgetting those changes nothing.
  bool HasPlace(uint64_t now_ns) NT_REQUIRES(mutex_);

  Mutex mutex_;
  // When an instance's whole allowance is available again.
  absl::flat_hash_map<std::string, uint64_t> due_ns_ NT_GUARDED_BY(mutex_);
  uint64_t next_sweep_ns_ NT_GUARDED_BY(mutex_) = 0;  // monotonic
};

}  // namespace neurontrace
