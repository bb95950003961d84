// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "aggregator/align/capture_clocks.h"
#include "aggregator/clocks/collective_matcher.h"
#include "aggregator/clocks/collective_reader.h"
#include "aggregator/clocks/order_classes.h"
#include "aggregator/store/stream_record.h"

namespace neurontrace {

// Compares the times of what several instances did together, by their clocks, with the order in
// which it can have been. It moves nothing. Cores of one job belong together, as far as each is
// another rank of it. `clocks` outlives the checker. One thread at a time.
class OrderChecker {
 public:
  OrderChecker(const CaptureClocks& clocks, OrderClasses classes)
      : clocks_(clocks), classes_(classes) {}

  bool is_needed() const { return classes_.any() && clocks_.instances.size() > 1; }
  // For the next core: as many parts more are kept, of these executions.
  CollectiveReader ReaderForCore() const;
  // All parts of a core of which the clocks are known by now.
  void AddCore(const StreamRecord& stream, CollectiveReader& reader);
  // By job, size, event type.
  std::vector<OrderCheck> Finish();

 private:
  using Key = std::tuple<std::string, int64_t, std::string>;  // job, world size, event type
  struct Group {
    std::vector<CollectiveEvent> events;
    uint64_t seen = 0;
    uint64_t left_out = 0;
    std::map<int64_t, uint64_t> core_of;  // by rank
    bool is_ambiguous = false;            // two cores are one rank
  };
  struct Times;

  void Thin(uint64_t stride);
  bool TakePart(const CollectivePart& part, Times& times, CollectiveEvent& event) const;
  OrderCheck Check(const Key& key, Group& group) const;
  void Compare(Group& group, OrderCheck& check) const;

  const CaptureClocks& clocks_;
  const OrderClasses classes_;
  std::map<Key, Group> groups_;
  uint64_t cores_ = 0;
  uint64_t stride_ = 1;
  size_t events_ = 0;
};

}  // namespace neurontrace
