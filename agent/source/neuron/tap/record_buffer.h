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
  // What JsonIndex and the readers of eight bytes at once need behind a text.
  static constexpr size_t kPaddingBytes = 64;
  // The most memory that is kept when a smaller record follows.
  static constexpr size_t kKeptBytes = size_t{4} << 20;

  // Returns at least `bytes` bytes, followed by kPaddingBytes zeros. The earlier contents may be
  // gone. Memory beyond kKeptBytes is given back when a smaller record follows.
  char* Prepare(size_t bytes) {
    if (bytes > capacity_ || (capacity_ > kKeptBytes && bytes <= kKeptBytes)) {
      // Half as much again, so that slowly growing records do not allocate each time. The old
      // memory goes first, to keep the peak low.
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
