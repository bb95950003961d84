// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/time_order.h"

#include <algorithm>
#include <cstddef>

#include "aggregator/timeline/radix_sort.h"

namespace neurontrace {
namespace {

// The order of a batch: by start, and of equal starts the longer span first, as it encloses the
// other.
bool StartsBefore(const TimelineRecord* a, const TimelineRecord* b) {
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns;
  return a->end_ns > b->end_ns;
}

}  // namespace

void TimeOrder::Sort(std::vector<TimelineRecord*>& records) {
  // One stream alone is usually sorted already.
  if (std::is_sorted(records.begin(), records.end(), StartsBefore)) return;
  items_.clear();
  for (TimelineRecord* record : records) items_.push_back({record->start_ns, record});
  RadixSortByKey(items_, spare_);
  // The radix sort knows the starts alone. Runs of equal starts are short, so they are sorted here.
  for (size_t i = 0; i < items_.size();) {
    size_t end = i + 1;
    while (end < items_.size() && items_[end].key == items_[i].key) ++end;
    if (end - i > 1) {
      std::stable_sort(
          items_.begin() + static_cast<long>(i), items_.begin() + static_cast<long>(end),
          [](const Item& a, const Item& b) { return a.record->end_ns > b.record->end_ns; });
    }
    i = end;
  }
  for (size_t i = 0; i < items_.size(); ++i) records[i] = items_[i].record;
}

}  // namespace neurontrace
