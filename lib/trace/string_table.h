// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neurontrace {

// The strings of one chunk, each stored once and numbered in the order of arrival. The bytes are in
// one buffer, found through a flat hash table; Clear keeps the memory for the next chunk, up to a
// bound. One thread at a time.
class StringTable {
 public:
  static constexpr uint32_t kFull = 0xffffffffu;

  StringTable();

  // Returns the number of `text`, adding it if it is new. Returns kFull, changing nothing, if it is
  // new and the table has limits::kChunkStringsMax strings or the text is longer than `room` bytes.
  uint32_t Intern(std::string_view text, size_t room);

  // Returns a string by number. The view is valid until the next Intern or Clear.
  std::string_view operator[](uint32_t index) const {
    assert(index < size());
    const uint32_t begin = ends_[index];
    return {bytes_.data() + begin, ends_[index + 1] - begin};
  }
  uint32_t size() const { return static_cast<uint32_t>(ends_.size() - 1); }
  // Returns all strings one after the other, as a chunk stores them.
  std::string_view bytes() const { return bytes_; }

  void Clear();

 private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t number = 0;  // index + 1; 0: free
  };
  void Grow();

  std::string bytes_;
  std::vector<uint32_t> ends_;  // ends_[0] is 0, ends_[i + 1] the end of string i
  std::vector<Slot> slots_;     // a power of two, at most half full, linear probing
};

}  // namespace neurontrace
