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
// `hardware` and `software`, and exclusions with `^`. An event type is selected if no positive item
// is given or one matches it, and no exclusion matches it. `hardware,^cc_running` selects all
// hardware events but one. Old and documented names are accepted for the real ones (`cc_exec` is
// cc_running, `device_exec` is nc_exec_running, …). Beyond the vendor's grammar a name may end in
// `*`: `nrt_tensor_*` matches all names with that beginning. A plain value.
class EventFilter {
 public:
  // Fails with INVALID_ARGUMENT, quoting the item that is empty, too long or contains a character
  // that no name has.
  static absl::StatusOr<EventFilter> Parse(const std::vector<std::string>& items);

  bool selects_all() const { return include_.empty() && exclude_.empty(); }
  // Returns whether events of this type are recorded.
  bool Selects(std::string_view event_type) const;
  // Returns whether it selects only types for which IsHardwareEventType is true.
  bool selects_only_hardware() const;

 private:
  std::vector<std::string> include_;
  std::vector<std::string> exclude_;
};

// The filter of a capture that names no event types: everything except allocations, which can be
// half of all events. Items of the grammar above.
inline constexpr std::array<std::string_view, 4> kDefaultEventTypeItems = {
    "^nrt_tensor_free", "^nrt_tensor_allocate", "^nrt_dma_mem_alloc", "^nrt_dma_mem_dealloc"};

// Returns kDefaultEventTypeItems in the form that a CaptureSpec has.
inline std::vector<std::string> DefaultEventFilter() {
  return {kDefaultEventTypeItems.begin(), kDefaultEventTypeItems.end()};
}

// An item of a filter that matches no known event type.
struct UnknownEventType {
  std::string item;     // as it was given
  std::string nearest;  // the known name that resembles it most; empty if none is known
  friend bool operator==(const UnknownEventType&, const UnknownEventType&) = default;
};
// How many of them are reported.
inline constexpr size_t kUnknownEventTypesMax = 16;
// Returns the items that match none of the `known` types, in their order; most are typing errors.
// The groups always match. The result is empty if `known` is empty, and has no items that Parse
// refuses. Pure.
std::vector<UnknownEventType> UnknownEventTypes(std::span<const std::string> items,
                                                std::span<const std::string> known);

// Returns whether the runtime's documentation counts events of this type as hardware events.
bool IsHardwareEventType(std::string_view event_type);

// Parses the vendor's core grammar (NEURON_RT_INSPECT_EVENT_FILTER_NC): `0`, `0,2,4`, `0-3` (both
// ends included). Returns the cores sorted and without repeats. Fails with INVALID_ARGUMENT,
// quoting the wrong item.
absl::StatusOr<std::vector<uint32_t>> ParseCoreList(std::string_view text);

}  // namespace neurontrace
