// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace neurontrace {

// The ends of spans that have begun, given out in the order of time; of two at one time that of the
// span begun later, which is the inner one, comes first. One thread at a time.
class PendingEnds {
 public:
  struct End {
    uint64_t key = 0;      // its time
    uint64_t number = 0;   // of the span, growing from span to span
    uint64_t span_id = 0;  // where its stop's attributes come apart from it; else 0
    uint32_t track_uuid = 0;
  };

  // Starts the slice that ends at `until_ns`: Add the ends of all spans that begin in it, then
  // Seal.
  void StartSlice(uint64_t until_ns);
  void Add(const End& end) {
    if (end.key < until_ns_) {
      due_.push_back(end);
    } else {
      AddLater(end);
    }
  }
  void Seal();

  // The next end of the slice; nullptr when there is none left.
  const End* next() const { return next_ == due_.size() ? nullptr : &due_[next_]; }
  void Pop() { ++next_; }

  size_t size() const { return later_.size() + due_.size() - next_; }

 private:
  void AddLater(const End& end);

  uint64_t until_ns_ = 0;
  std::vector<End> later_;  // min-heap
  std::vector<End> due_;
  std::vector<End> spare_;
  size_t next_ = 0;
};

}  // namespace neurontrace
