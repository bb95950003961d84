// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace neurontrace {

// What a capture records. Empty selections mean everything. A plain value; limits are checked at
// the wire.
struct CaptureSpec {
  std::string name;
  std::string job;
  std::vector<std::string> instance_ids;
  std::vector<uint32_t> neuron_cores;    // nc_idx, inside the process
  std::vector<std::string> event_types;  // grammar of trace/event_filter.h
  uint64_t duration_ns = 0;              // 0: until stopped
  uint64_t ring_events_per_core = 0;     // 0: limits::kRingEventsPerCoreDefault
  bool include_neuron = true;
  bool include_framework = true;

  friend bool operator==(const CaptureSpec&, const CaptureSpec&) = default;
};

}  // namespace neurontrace
