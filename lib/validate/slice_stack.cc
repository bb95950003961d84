// SPDX-License-Identifier: Apache-2.0
#include "lib/validate/slice_stack.h"

#include <algorithm>
#include <iterator>

namespace neurontrace {

// Walks from the innermost slice outwards. Ended slices without open ones in them are removed; an
// ended slice with open ones is removed together with them if time has passed its end.
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
      // At the same time the inner ones may still end.
    } else if (time_ns > slice->end_ns) {
      const Cut cut{*slice, open_above};
      // Of the removed slices the open ones were not counted as ended.
      ended_ -= static_cast<size_t>(std::distance(slice, slices_.end())) - open_above;
      slices_.erase(slice, slices_.end());
      return cut;
    }
  }
  return std::nullopt;
}

std::optional<SliceStack::Slice> SliceStack::End(uint64_t name, uint64_t category, uint64_t time_ns,
                                                 TracePosition at) {
  // This is the rule of Perfetto's SliceTracker::MatchingIncompleteSliceIndex.
  const auto fits = [=](const Slice& slice) {
    return slice.end_ns == kOpen && (name == 0 || slice.name == 0 || name == slice.name) &&
           (category == 0 || category == slice.category);
  };
  const auto found = std::find_if(slices_.rbegin(), slices_.rend(), fits);
  if (found == slices_.rend()) return std::nullopt;
  const Slice slice = *found;
  // The innermost slice ends, by far the most frequent case.
  if (found == slices_.rbegin()) {
    slices_.pop_back();
  } else {
    // Slices in it are open: it stays until the next event shows whether they end at the same time.
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
