// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// Knows which processes of this node have a tap that has connected. Implemented by TapSource. On
// the agent's sequence.
class TappedWorkers {
 public:
  virtual ~TappedWorkers() = default;

  // Returns whether the process is a worker with a tap here.
  virtual bool HasWorker(uint32_t pid, uint64_t start_time_ticks) const = 0;
};

}  // namespace neurontrace
