// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/trace/capture_spec.h"

namespace neurontrace {

// The vendor's event-type grammar (NEURON_RT_INSPECT_EVENT_FILTER_TYPE): names, the groups
// `hardware` and `software`, and exclusions with `^`, applied together: something is selected when
// no positive item is given or one matches it, and no exclusion matches it. `hardware,^cc_running`
// is all hardware events but one. Old and documented names are understood as the real ones
// (`cc_exec` is cc_running, `device_exec` is nc_exec_running, …). Beyond the vendor's grammar a
// name may end in `*`: `nrt_tensor_*` is all that begin so. A plain value.
class EventFilter {
 public:
  // INVALID_ARGUMENT names the item that is empty, too long or has a character that no name has.
  static absl::StatusOr<EventFilter> Parse(const std::vector<std::string>& items);

  bool selects_all() const { return include_.empty() && exclude_.empty(); }
  bool Selects(std::string_view event_type) const;
  // True if it selects nothing but what IsHardwareEventType knows.
  bool selects_only_hardware() const;

 private:
  std::vector<std::string> include_;
  std::vector<std::string> exclude_;
};

// What a capture that names no event types leaves out: the noise of allocations, which can be half
// of all events. Items of the grammar above.
inline constexpr std::array<std::string_view, 4> kDefaultEventTypeItems = {
    "^nrt_tensor_free", "^nrt_tensor_allocate", "^nrt_dma_mem_alloc", "^nrt_dma_mem_dealloc"};

// What is put into a capture that says nothing of event types.
inline std::vector<std::string> DefaultEventFilter() {
  return {kDefaultEventTypeItems.begin(), kDefaultEventTypeItems.end()};
}

struct UnknownEventType {
  std::string item;     // as it was given
  std::string nearest;  // the known name that is most like it; empty where none is known
  friend bool operator==(const UnknownEventType&, const UnknownEventType&) = default;
};
// At most so many are named.
inline constexpr size_t kUnknownEventTypesMax = 16;
// The items that match none of the `known` types, in their order: slips of the pen, most likely.
// The groups are always known; nothing is said where no type is known, nor of items that Parse
// refuses. Pure.
std::vector<UnknownEventType> UnknownEventTypes(std::span<const std::string> items,
                                                std::span<const std::string> known);

// True for the events that the runtime's documentation counts as the hardware's.
bool IsHardwareEventType(std::string_view event_type);

// The vendor's core grammar (NEURON_RT_INSPECT_EVENT_FILTER_NC): `0`, `0,2,4`, `0-3` (both ends
// in), sorted and without repeats. INVALID_ARGUMENT names the item at fault.
absl::StatusOr<std::vector<uint32_t>> ParseCoreList(std::string_view text);

}  // namespace neurontrace
