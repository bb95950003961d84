// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/pending_ends.h"

#include <algorithm>
#include <utility>

#include "aggregator/timeline/radix_sort.h"

namespace neurontrace {
namespace {

// Orders a min-heap by time; of two ends at one time, that of the later span comes first.
bool ComesLater(const PendingEnds::End& a, const PendingEnds::End& b) {
  return std::pair(a.key, b.number) > std::pair(b.key, a.number);
}

}  // namespace

// Moves the ends that are now due out of the heap, and restores the order in which they were added,
// which Seal needs.
void PendingEnds::StartSlice(uint64_t until_ns) {
  until_ns_ = until_ns;
  due_.clear();
  next_ = 0;
  while (!later_.empty() && later_.front().key < until_ns) {
    std::pop_heap(later_.begin(), later_.end(), ComesLater);
    due_.push_back(later_.back());
    later_.pop_back();
  }
  std::sort(due_.begin(), due_.end(),
            [](const End& a, const End& b) { return a.number < b.number; });
}

void PendingEnds::AddLater(const End& end) {
  later_.push_back(end);
  std::push_heap(later_.begin(), later_.end(), ComesLater);
}

// The ends were added in the order of their spans' numbers. After reversing, a stable sort by time
// puts the end of the span begun last first among those of one time.
void PendingEnds::Seal() {
  std::reverse(due_.begin(), due_.end());
  RadixSortByKey(due_, spare_);
}

}  // namespace neurontrace
