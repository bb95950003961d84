// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "aggregator/align/device/device_event.h"
#include "aggregator/align/device/open_device_spans.h"

namespace neurontrace {

// A core's part in a collective or barrier, from its events.
struct CollectivePart {
  DeviceEventType type = DeviceEventType::kCollective;  // or kBarrier
  uint64_t exec_id = 0;
  uint64_t operation = 0;
  uint64_t sequence = 0;  // of its start in the ring
  std::optional<uint64_t> physical = {};
  std::optional<uint64_t> enter_counter_ns = {};  // none for a barrier, which is on the host
  std::optional<uint64_t> exit_counter_ns = {};
  uint64_t enter_ns = 0;  // the runtime's timestamp
  uint64_t exit_ns = 0;
};

// Finds the parts in collectives among the events of one logical core, which are added in the order
// of its ring. Memory is bounded by keeping every second, every fourth ... execution. One thread at
// a time. Used by event_clocks.h for each core, while the same pass reads the evidence of device
// clocks.
class CollectiveReader {
 public:
  // Keeps only executions whose number is a multiple of `stride`, so that all cores keep the same
  // ones.
  CollectiveReader(uint64_t stride, size_t parts_max) : stride_(stride), parts_max_(parts_max) {}

  // Ignores events of other types, and starts without an execution's number.
  void Add(std::span<const DeviceEvent> events);
  // Returns the complete parts in the order of their ends. Called once, at the end.
  std::vector<CollectivePart> Take() { return std::move(parts_); }
  // Larger than at the beginning if there were too many parts.
  uint64_t stride() const { return stride_; }

 private:
  // Start opens a part. Stop completes it, and doubles the stride while there are more than
  // parts_max.
  void Start(const DeviceEvent& event);
  void Stop(const DeviceEvent& event);

  // Only executions whose number is a multiple of it are kept.
  uint64_t stride_;
  const size_t parts_max_;
  OpenDeviceSpans<CollectivePart> open_;
  std::vector<CollectivePart> parts_;
};

}  // namespace neurontrace
