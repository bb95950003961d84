// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/capture/fidelity_levels.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/trace/fidelity.h"

namespace neurontrace {
namespace {

// One level, as a filter and as a text.
struct Level {
  // Items of the grammar of lib/trace/event_filter.h: exclusions on top of the level before, or,
  // where one is positive, all that is left.
  std::vector<std::string> items;
  std::string_view leaves_out;
};

// timestamp_sync_point is what the clocks of devices are fitted to, and errors are what people
// trace for: both are kept to the last level, and are rare. The first two levels are those of
// lib/trace/fidelity.h.
const std::array<Level, kFidelityLevels>& Levels() {
  static const std::array<Level, kFidelityLevels> kLevels = {{
      {{}, ""},
      {{"^nrt_tensor_allocate", "^nrt_tensor_free", "^nrt_dma_mem_*"}, kAllocationsOmitted},
      {{"^nrt_tensor_read*", "^nrt_tensor_write*", "^tensor_block_while_exec", "^dmem_buf_*"},
       kTensorCallsOmitted},
      {{"^kmgr_*", "^kbl_*", "^enc_*", "^exec_consume_*", "^nrt_model_submit", "^nrt_async_*"},
       "allocation events, tensor reads and writes, copies, the steps of an execution on the host"},
      {{"hardware", "nrt_execute"}, "host events but nrt_execute"},
      {{"nc_exec_running", "cc_running", "timestamp_sync_point", "numerical_err", "hw_notify"},
       "all but hardware executions, collectives, errors and sync points"},
  }};
  return kLevels;
}

// Returns the filter of each level. Exclusions add up from level to level until one names all that
// is left.
std::array<EventFilter, kFidelityLevels> MakeFilters() {
  std::array<EventFilter, kFidelityLevels> filters;
  std::vector<std::string> exclusions;
  for (uint32_t level = 0; level < kFidelityLevels; ++level) {
    const std::vector<std::string>& items = Levels()[level].items;
    const bool is_positive = !items.empty() && !items.front().starts_with('^');
    if (!is_positive) exclusions.insert(exclusions.end(), items.begin(), items.end());
    absl::StatusOr<EventFilter> filter = EventFilter::Parse(is_positive ? items : exclusions);
    if (filter.ok()) filters[level] = *std::move(filter);  // a test parses all of them
  }
  return filters;
}

// From the vendor's documentation, for runtimes that do not list their types.
constexpr std::array<std::string_view, 33> kDocumentedTypes = {"nrt_load",
                                                               "nrt_execute",
                                                               "kmgr_exec_core",
                                                               "nrt_load_collectives",
                                                               "cc_exec_barrier",
                                                               "nc_exec_running",
                                                               "cc_running",
                                                               "nrt_tensor_read",
                                                               "nrt_tensor_write",
                                                               "numerical_err",
                                                               "enc_barrier",
                                                               "kbl_exec_pre",
                                                               "kbl_exec_core",
                                                               "kbl_exec_wait",
                                                               "kbl_exec_post",
                                                               "nrt_model_switch",
                                                               "nrt_model_submit",
                                                               "hw_notify",
                                                               "nrt_async_sema_wait",
                                                               "timestamp_sync_point",
                                                               "nc_model_switch",
                                                               "nrt_tensor_free",
                                                               "nrt_tensor_allocate",
                                                               "tensor_block_while_exec",
                                                               "dmem_buf_copyin",
                                                               "dmem_buf_copyout",
                                                               "nrt_dma_mem_alloc",
                                                               "nrt_dma_mem_dealloc",
                                                               "exec_consume_input",
                                                               "generic",
                                                               "dmem_buf_batch_copyin",
                                                               "nrt_tensor_read_batch",
                                                               "nrt_tensor_write_batch"};

}  // namespace

const EventFilter& FilterOfFidelity(uint32_t level) {
  static const std::array<EventFilter, kFidelityLevels> kFilters = MakeFilters();
  return kFilters[std::min(level, kFidelityLevels - 1)];
}

std::string_view LeftOutOfFidelity(uint32_t level) {
  return Levels()[std::min(level, kFidelityLevels - 1)].leaves_out;
}

std::vector<uint32_t> UsefulFidelityLevels(const EventFilter& wanted,
                                           std::span<const std::string> event_types) {
  // `left` shrinks from level to level, so that a level is compared with the last one that made a
  // difference.
  std::vector<std::string_view> left;
  const auto take = [&](std::string_view type) {
    if (wanted.Selects(type)) left.push_back(type);
  };
  for (const std::string& type : event_types) take(type);
  if (event_types.empty()) std::for_each(kDocumentedTypes.begin(), kDocumentedTypes.end(), take);
  std::vector<uint32_t> levels = {0};
  for (uint32_t level = 1; level < kFidelityLevels; ++level) {
    std::vector<std::string_view> fewer;
    for (const std::string_view type : left) {
      if (FilterOfFidelity(level).Selects(type)) fewer.push_back(type);
    }
    if (fewer.empty() || fewer.size() == left.size()) continue;
    levels.push_back(level);
    left = std::move(fewer);
  }
  return levels;
}

}  // namespace neurontrace
