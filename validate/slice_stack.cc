// SPDX-License-Identifier: Apache-2.0
#include "validate/slice_stack.h"

#include <algorithm>

namespace neurontrace {
namespace {

constexpr size_t kSlicesKept = 8;  // room that is not given back, for slices that follow each other

}  // namespace

std::optional<SliceStack::Cut> SliceStack::Settle(uint64_t time_ns) {
  if (ended_ == 0) return std::nullopt;
  size_t open_above = 0;
  for (size_t i = slices_.size(); i-- > 0;) {
    if (slices_[i].end_ns == kOpen) {
      ++open_above;
    } else if (open_above == 0) {
      slices_.pop_back();
      --ended_;
    } else if (time_ns > slices_[i].end_ns) {  // at the same time the others may yet end
      Cut cut{slices_[i], open_above};
      slices_.resize(i);
      --ended_;
      Shrink();
      return cut;
    }
  }
  Shrink();
  return std::nullopt;
}

void SliceStack::Begin(const Slice& slice) { slices_.push_back(slice); }

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
    Shrink();
  } else {
    found->end_ns = time_ns;
    found->at = at;
    ++ended_;
  }
  return slice;
}

void SliceStack::Clear() {
  std::vector<Slice>().swap(slices_);
  ended_ = 0;
}

const SliceStack::Slice& SliceStack::FirstOpen() const {
  return *std::find_if(slices_.begin(), slices_.end(),
                       [](const Slice& slice) { return slice.end_ns == kOpen; });
}

// A million tracks that were once deep do not keep the room for it.
void SliceStack::Shrink() {
  if (slices_.capacity() <= kSlicesKept || slices_.size() > slices_.capacity() / 4) return;
  std::vector<Slice> smaller;
  smaller.reserve(std::max(kSlicesKept, slices_.capacity() / 2));
  smaller.assign(slices_.begin(), slices_.end());
  slices_.swap(smaller);
}

}  // namespace neurontrace
