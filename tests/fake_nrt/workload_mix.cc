// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/workload_mix.h"

namespace neurontrace {

std::optional<WorkloadMix> WorkloadMix::Named(std::string_view name) {
  if (name == "eager") {
    return WorkloadMix{.tensor_allocate = 17,
                       .dma_mem_alloc = 49,
                       .tensor_write = 14,
                       .copyin = 54,
                       .tensor_read = 15,
                       .copyout = 19,
                       .tensor_free = 240,
                       .dma_mem_dealloc = 23,
                       .collectives = 36};
  }
  if (name == "graph") {
    return WorkloadMix{.tensor_allocate = 2,
                       .dma_mem_alloc = 2,
                       .tensor_write = 20,
                       .copyin = 50,
                       .tensor_read = 2,
                       .copyout = 4,
                       .tensor_free = 4,
                       .dma_mem_dealloc = 2,
                       .collectives = 12};
  }
  if (name == "bare")
    return WorkloadMix{.tensor_write = 1, .copyin = 1, .tensor_read = 1, .copyout = 1};
  return std::nullopt;
}

uint32_t WorkloadMix::EventsPerExecution(uint32_t physical_per_logical) const {
  const uint32_t host = tensor_allocate + dma_mem_alloc + tensor_write + copyin + tensor_read +
                        copyout + tensor_free + dma_mem_dealloc;
  // nrt_execute, kmgr_exec_core, nrt_model_submit, four kbl_exec_*, enc_barrier, cc_exec_barrier
  // and three exec_consume_*; then the sync point, which is one instant.
  constexpr uint32_t kExecutionSpans = 12;
  return 2 * (host + collectives + physical_per_logical + kExecutionSpans) + 1;
}

}  // namespace neurontrace
