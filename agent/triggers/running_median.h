// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace neurontrace {

// The median of the last kWindow values. Constant memory; each value costs an insertion into a
// sorted array of that size.
class RunningMedian {
 public:
  static constexpr size_t kWindow = 64;
  // The median of fewer values is not meaningful.
  static constexpr size_t kEnough = 16;

  // Replaces the oldest value once there are kWindow of them.
  void Add(uint64_t value);
  // Returns the upper median; nothing while there are too few values.
  std::optional<uint64_t> Get() const;

 private:
  // The same values twice: the ring knows which is the oldest, the sorted array has the median.
  std::array<uint64_t, kWindow> in_order_;  // of arrival; a ring
  std::array<uint64_t, kWindow> sorted_;
  size_t size_ = 0;
  size_t next_ = 0;
};

}  // namespace neurontrace
