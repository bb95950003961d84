// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/interval_cover.h"

#include <algorithm>

namespace neurontrace {

void IntervalCover::Add(uint64_t start_ns, uint64_t end_ns) {
  if (end_ns <= start_ns) return;
  while (count_ > 0 && latest_[count_ - 1].end >= start_ns) {
    start_ns = std::min(start_ns, latest_[count_ - 1].start);
    end_ns = std::max(end_ns, latest_[count_ - 1].end);
    --count_;
  }
  if (count_ == kKept) {
    before_ns_ += latest_[0].end - latest_[0].start;
    std::move(latest_.begin() + 1, latest_.end(), latest_.begin());
    --count_;
  }
  latest_[count_++] = {start_ns, end_ns};
}

uint64_t IntervalCover::LengthFrom(uint64_t from_ns) const {
  uint64_t length = before_ns_;
  for (size_t i = 0; i < count_; ++i) {
    if (latest_[i].end > from_ns) length += latest_[i].end - std::max(from_ns, latest_[i].start);
  }
  return length;
}

}  // namespace neurontrace
