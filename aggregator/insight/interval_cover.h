// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace neurontrace {

// The length of a union of intervals that are added in the order of their ends. Exact while an
// interval overlaps at most the latest kKept separate ones. A plain value.
class IntervalCover {
 public:
  void Add(uint64_t start_ns, uint64_t end_ns);
  // Without what is before `from_ns`; exact if that cuts no interval but the latest ones.
  uint64_t LengthFrom(uint64_t from_ns) const;
  void Clear() { *this = {}; }

 private:
  static constexpr size_t kKept = 4;
  struct Interval {
    uint64_t start = 0;
    uint64_t end = 0;
  };
  std::array<Interval, kKept> latest_ = {};
  size_t count_ = 0;
  uint64_t before_ns_ = 0;  // length of those that are not kept
};

}  // namespace neurontrace
