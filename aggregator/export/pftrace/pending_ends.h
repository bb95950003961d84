// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace neurontrace {

// The ends of spans that have begun, returned in the order of time. Of two at one time, that of the
// span begun later, which is the inner one, comes first. Ends inside the current slice of time are
// sorted once, with a radix sort, and later ones wait in a heap until their slice. Used by one
// thread at a time.
class PendingEnds {
 public:
  // The end of one span.
  struct End {
    // Its time; the name is what RadixSortByKey needs.
    uint64_t key = 0;
    // Of the span, ascending from span to span.
    uint64_t number = 0;
    // Set if the stop's attributes come separately, else 0.
    uint64_t span_id = 0;
    uint32_t track_uuid = 0;
  };

  // Starts the slice that ends at `until_ns`. Then Add must be called for all spans that begin in
  // it, and Seal.
  void StartSlice(uint64_t until_ns);
  void Add(const End& end) {
    if (end.key < until_ns_) {
      due_.push_back(end);
    } else {
      AddLater(end);
    }
  }
  void Seal();

  // Returns the next end of the slice, or nullptr if there is none left.
  const End* next() const { return next_ == due_.size() ? nullptr : &due_[next_]; }
  void Pop() { ++next_; }

  size_t size() const { return later_.size() + due_.size() - next_; }

 private:
  void AddLater(const End& end);

  uint64_t until_ns_ = 0;
  // A min-heap: ends beyond the slice.
  std::vector<End> later_;
  // The ends of the slice, sorted after Seal; next_ is the first that was not popped.
  std::vector<End> due_;
  // Memory for the sort.
  std::vector<End> spare_;
  size_t next_ = 0;
};

}  // namespace neurontrace
