// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// Sorts the records of a time slice by start; at equal start the longer first (what encloses comes
// before what it encloses), then as they stood. Keeps its memory; one thread at a time.
class TimeOrder {
 public:
  void Sort(std::vector<TimelineRecord*>& records);

 private:
  struct Item {
    uint64_t key;  // start
    TimelineRecord* record;
  };

  std::vector<Item> items_;
  std::vector<Item> spare_;
};

}  // namespace neurontrace
