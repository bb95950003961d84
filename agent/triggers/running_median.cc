// SPDX-License-Identifier: Apache-2.0
#include "agent/triggers/running_median.h"

#include <algorithm>

namespace neurontrace {

void RunningMedian::Add(uint64_t value) {
  auto end = sorted_.begin() + static_cast<ptrdiff_t>(size_);
  // The oldest value leaves the sorted array first, so that the new one has room.
  if (size_ == kWindow) {
    const auto oldest = std::lower_bound(sorted_.begin(), end, in_order_[next_]);
    std::copy(oldest + 1, end, oldest);
    --end;
    --size_;
  }
  const auto place = std::upper_bound(sorted_.begin(), end, value);
  std::copy_backward(place, end, end + 1);
  *place = value;
  in_order_[next_] = value;
  next_ = (next_ + 1) % kWindow;
  ++size_;
}

std::optional<uint64_t> RunningMedian::Get() const {
  if (size_ < kEnough) return std::nullopt;
  return sorted_[size_ / 2];
}

}  // namespace neurontrace
