// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>

namespace neurontrace {

// Memory that records are copied into, reused from record to record. Not cleared when it grows, as
// the first touch of a page costs more than the copy. Used by one thread at a time.
class RecordBuffer {
 public:
  static constexpr size_t kPaddingBytes = 64;
  static constexpr size_t kKeptBytes = size_t{4} << 20;

  // Returns at least `bytes` bytes, followed by kPaddingBytes zeros. The earlier contents may be
  // gone. Memory beyond kKeptBytes is given back when a smaller record follows.
  char* Prepare(size_t bytes) {
    if (bytes > capacity_ || (capacity_ > kKeptBytes && bytes <= kKeptBytes)) {
      capacity_ = bytes + bytes / 2;
      memory_.reset();
      memory_.reset(new char[capacity_ + kPaddingBytes]);
    }
    std::memset(memory_.get() + bytes, 0, kPaddingBytes);
    return memory_.get();
  }

 private:
  std::unique_ptr<char[]> memory_;
  size_t capacity_ = 0;
};

}  // namespace neurontrace
