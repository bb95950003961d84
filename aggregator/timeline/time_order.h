// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// Sorts the records of a time slice by start; at equal start the longer first (what encloses comes
// before what it encloses), then as they stood. Radix sort on what the times differ in, so that a
// slice of some 16,000 records stays in the cache. Keeps its memory; one thread at a time.
class TimeOrder {
 public:
  void Sort(std::vector<TimelineRecord*>& records);

 private:
  struct Item {
    uint64_t key;
    TimelineRecord* record;
  };
  void SortByStart(uint64_t difference_max);

  std::vector<Item> items_;
  std::vector<Item> spare_;
};

}  // namespace neurontrace
