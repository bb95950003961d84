// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/align/device/device_event.h"
#include "aggregator/clocks/collective_matcher.h"
#include "aggregator/clocks/collective_reader.h"
#include "aggregator/clocks/order_classes.h"
#include "aggregator/store/stream_record.h"

namespace neurontrace {

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
  bool AddPart(const CollectivePart& part, Times& times, CollectiveEvent& event) const;
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
