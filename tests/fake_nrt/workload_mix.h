// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace neurontrace {

// How many spans of each kind one execution of one core has. The proportions are those of published
// captures of real workloads.
struct WorkloadMix {
  uint32_t tensor_allocate = 0;
  uint32_t dma_mem_alloc = 0;
  uint32_t tensor_write = 0;
  uint32_t copyin = 0;
  uint32_t tensor_read = 0;
  uint32_t copyout = 0;
  uint32_t tensor_free = 0;
  uint32_t dma_mem_dealloc = 0;
  uint32_t collectives = 0;

  // "eager": 482 spans, half of them nrt_tensor_free. "graph": about 110, mostly copies.
  // "bare": 19.
  static std::optional<WorkloadMix> Named(std::string_view name);

  // Ring events of one execution, without the occasional ones.
  uint32_t EventsPerExecution(uint32_t physical_per_logical) const;
};

}  // namespace neurontrace
