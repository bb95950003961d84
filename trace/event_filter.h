// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace neurontrace {

// The vendor's event-type grammar (NEURON_RT_INSPECT_EVENT_FILTER_TYPE): names, the groups
// `hardware` and `software`, and exclusions with `^`, applied together: something is selected when
// no positive item is given or one matches it, and no exclusion matches it. `hardware,^cc_running`
// is all hardware events but one. Old and documented names are understood as the real ones
// (`cc_exec` is cc_running, `device_exec` is nc_exec_running, …). A plain value.
class EventFilter {
 public:
  // INVALID_ARGUMENT names the item that is empty, too long or has a character that no name has.
  static absl::StatusOr<EventFilter> Parse(const std::vector<std::string>& items);

  bool selects_all() const { return include_.empty() && exclude_.empty(); }
  bool Selects(std::string_view event_type) const;

 private:
  std::vector<std::string> include_;
  std::vector<std::string> exclude_;
};

// True for the events that the runtime's documentation counts as the hardware's.
bool IsHardwareEventType(std::string_view event_type);

// The vendor's core grammar (NEURON_RT_INSPECT_EVENT_FILTER_NC): `0`, `0,2,4`, `0-3` (both ends
// in), sorted and without repeats. INVALID_ARGUMENT names the item at fault.
absl::StatusOr<std::vector<uint32_t>> ParseCoreList(std::string_view text);

}  // namespace neurontrace
