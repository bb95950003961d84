// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace neurontrace {

// FNV-1a; 0 stands for no text.
uint64_t HashText(std::string_view text);

// The texts of one kind that a sequence names by number. Keeps of each its hash and its beginning.
// One thread at a time.
class InternTable {
 public:
  struct Text {
    uint64_t hash = 0;  // 0: not interned
    std::string beginning;
  };

  // False where the number has another text already. `is_new` tells whether one was added.
  bool Add(uint64_t iid, std::string_view text, bool& is_new);
  const Text* Find(uint64_t iid) const;
  size_t size() const { return size_; }
  // Places that there is memory for, empty ones among them.
  size_t places() const { return low_.capacity() + high_.size(); }

 private:
  Text& At(uint64_t iid);

  std::vector<Text> low_;                     // by number, as writers count
  absl::flat_hash_map<uint64_t, Text> high_;  // numbers that low_ does not reach
  size_t size_ = 0;
};

}  // namespace neurontrace
