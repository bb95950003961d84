// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// Sorts the records of a time slice by start. At equal start the longer is first (what encloses
// precedes what it encloses), and else the order is kept. Keeps its memory. Used by one thread at a
// time.
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
