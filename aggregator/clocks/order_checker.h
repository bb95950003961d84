// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/align/device/device_event.h"
#include "aggregator/align/device/open_device_spans.h"
#include "aggregator/clocks/collective_matcher.h"
#include "aggregator/clocks/order_classes.h"
#include "aggregator/store/stream_record.h"

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

// Compares the times of joint operations of several instances, by their clocks, with the order in
// which they can have happened. Moves no clock (docs/decisions/0037). Cores of one job belong
// together if each is another rank. `clocks` must outlive the checker. One thread at a time.
class OrderChecker {
 public:
  OrderChecker(const CaptureClocks& clocks, OrderClasses classes)
      : clocks_(clocks), classes_(classes) {}

  // Returns false if no class is enabled or only one instance has a clock, when nothing could be
  // compared.
  bool is_needed() const { return classes_.any() && clocks_.instances.size() > 1; }
  // Returns a reader for the next core, with the current stride.
  CollectiveReader ReaderForCore() const;
  // Adds all parts of a core whose clocks are known by now. Takes the parts out of `reader`. Parts
  // without a known time are counted as left out. Requires the core's device clocks to be in the
  // maps already.
  void AddCore(const StreamRecord& stream, CollectiveReader& reader);
  // Returns the checks by job, world size and event type. Jobs of a single core are omitted. Called
  // once.
  std::vector<OrderCheck> Finish();

 private:
  using Key = std::tuple<std::string, int64_t, std::string>;  // job, world size, event type
  // The parts of one job and event type, over all its cores.
  struct Group {
    // Holds those with known times.
    std::vector<CollectiveEvent> events;
    // Counts all parts, also those that are left out.
    uint64_t seen = 0;
    uint64_t left_out = 0;
    std::map<int64_t, uint64_t> core_of;  // by rank
    bool is_ambiguous = false;            // two cores claim one rank
  };
  struct Times;

  // Drops executions that are no multiple of the stride. Limits memory at limits::kOrderEventsMax
  // events over all groups.
  void Thin(uint64_t stride);
  // Returns false if a part has no known time. Otherwise fills `event` with reference times.
  bool TakePart(const CollectivePart& part, Times& times, CollectiveEvent& event) const;
  // Judges one group; states the reason if it cannot be compared.
  OrderCheck Check(const Key& key, Group& group) const;
  // Fills the counts and the worst violations. Reorders the group's events.
  void Compare(Group& group, OrderCheck& check) const;

  const CaptureClocks& clocks_;
  const OrderClasses classes_;
  std::map<Key, Group> groups_;
  // Numbers the cores in the order in which they were added.
  uint64_t cores_ = 0;
  // The strictest of all cores and groups.
  uint64_t stride_ = 1;
  // Counts the events of all groups together.
  size_t events_ = 0;
};

}  // namespace neurontrace
