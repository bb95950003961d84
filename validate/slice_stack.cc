// SPDX-License-Identifier: Apache-2.0
#include "validate/slice_stack.h"

#include <algorithm>
#include <iterator>

namespace neurontrace {

std::optional<SliceStack::Cut> SliceStack::Settle(uint64_t time_ns) {
  if (ended_ == 0) return std::nullopt;
  size_t open_above = 0;
  for (auto slice = slices_.end(); slice != slices_.begin();) {
    --slice;
    if (slice->end_ns == kOpen) {
      ++open_above;
    } else if (open_above == 0) {
      slice = slices_.erase(slice);
      --ended_;
    } else if (time_ns > slice->end_ns) {  // at the same time the others may yet end
      const Cut cut{*slice, open_above};
      ended_ -= static_cast<size_t>(std::distance(slice, slices_.end())) - open_above;
      slices_.erase(slice, slices_.end());
      return cut;
    }
  }
  return std::nullopt;
}

std::optional<SliceStack::Slice> SliceStack::End(uint64_t name, uint64_t category, uint64_t time_ns,
                                                 TracePosition at) {
  const auto fits = [=](const Slice& slice) {
    return slice.end_ns == kOpen && (name == 0 || slice.name == 0 || name == slice.name) &&
           (category == 0 || category == slice.category);
  };
  const auto found = std::find_if(slices_.rbegin(), slices_.rend(), fits);
  if (found == slices_.rend()) return std::nullopt;
  const Slice slice = *found;
  if (found == slices_.rbegin()) {
    slices_.pop_back();
  } else {
    found->end_ns = time_ns;
    found->at = at;
    ++ended_;
  }
  return slice;
}

void SliceStack::Clear() {
  slices_.clear();
  ended_ = 0;
}

}  // namespace neurontrace
