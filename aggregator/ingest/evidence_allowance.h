// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

namespace neurontrace {

// How much clock evidence may still be stored of each instance: an agent that makes up more than
// there can be must not fill the store. Any thread.
class EvidenceAllowance {
 public:
  // Takes a row of so many bytes at `now_ns`, which is monotonic. RESOURCE_EXHAUSTED beyond
  // limits::kClockHostBytesPerHourMax or kClockHostBytesAtOnceMax, of which nothing is taken then,
  // and of instances beyond limits::kClockHostsMax.
  absl::Status Take(const std::string& instance_id, size_t bytes, uint64_t now_ns);

 private:
  bool HasPlace(uint64_t now_ns);  // needs mutex_

  std::mutex mutex_;
  // When all of its allowance is there again. Guarded by mutex_.
  absl::flat_hash_map<std::string, uint64_t> due_ns_;
  uint64_t next_sweep_ns_ = 0;  // guarded by mutex_
};

}  // namespace neurontrace
