// SPDX-License-Identifier: Apache-2.0
#include "validate/slice_stack.h"

#include <algorithm>

namespace neurontrace {
namespace {

constexpr size_t kSlicesKept = 8;  // room that is not given back, for slices that follow each other

}  // namespace

std::optional<SliceStack::Cut> SliceStack::Settle(uint64_t time_ns) {
  has_instant_ = false;
  if (ended_ == 0) return std::nullopt;
  size_t open_above = 0;
  for (size_t i = slices_.size(); i-- > 0;) {
    if (slices_[i].end_ns == kOpen) {
      ++open_above;
    } else if (open_above == 0) {
      if (slices_[i].end_ns > time_ns) continue;  // a complete one
      slices_.erase(slices_.begin() + static_cast<ptrdiff_t>(i));
      --ended_;
    } else if (time_ns > slices_[i].end_ns) {  // at the same time the others may yet end
      Cut cut{slices_[i], open_above};
      ended_ -= slices_.size() - i - open_above;
      slices_.resize(i);
      Shrink();
      return cut;
    }
  }
  Shrink();
  return std::nullopt;
}

bool SliceStack::AddComplete(const Slice& slice) {
  for (auto above = slices_.rbegin(); above != slices_.rend() && above->end_ns != kOpen; ++above) {
    if (slice.start_ns < above->end_ns && slice.end_ns > above->end_ns) return false;
  }
  slices_.push_back(slice);
  ++ended_;
  return true;
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
  has_instant_ = false;
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
