// SPDX-License-Identifier: Apache-2.0
// An open-addressing hash table of 32-bit hashes and numbers over one buffer of bytes. A look-up
// compares hashes first and touches a text only where they are equal.
#include "lib/trace/string_table.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

constexpr size_t kSlotsInitial = 256;
// The memory that Clear keeps. More is freed, so that one unusual chunk does not cost memory for
// ever.
constexpr size_t kSlotsKept = 8192;
constexpr size_t kBytesKept = 256u << 10;

// absl::Hash is seeded in each process: a worker cannot choose strings that collide.
uint32_t Hash(std::string_view text) {
  return static_cast<uint32_t>(
      absl::Hash<absl::string_view>{}(absl::string_view(text.data(), text.size())));
}

}  // namespace

StringTable::StringTable() : ends_(1, 0), slots_(kSlotsInitial) {}

uint32_t StringTable::Intern(std::string_view text, size_t room) {
  const uint32_t hash = Hash(text);
  assert(std::has_single_bit(slots_.size()) && size_t{size()} * 2 <= slots_.size());
  // Linear probing until the text or a free slot is found.
  size_t at = hash & (slots_.size() - 1);
  for (; slots_[at].number != 0; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].hash != hash) continue;
    const uint32_t index = slots_[at].number - 1;
    if ((*this)[index] == text) return index;
  }
  if (size() >= limits::kChunkStringsMax || text.size() > room) return kFull;
  const uint32_t index = size();
  assert(slots_[at].number == 0 && ends_.back() == bytes_.size());
  bytes_.append(text);
  ends_.push_back(static_cast<uint32_t>(bytes_.size()));
  slots_[at] = {hash, index + 1};
  // At most half full, so that linear probing stays short and always finds a free slot.
  if (size_t{size()} * 2 > slots_.size()) Grow();
  return index;
}

// Doubles the slots. Numbers of strings stay the same.
void StringTable::Grow() {
  assert(!slots_.empty());
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  // Slots keep the hash, so that growing touches no text.
  for (const Slot& slot : old) {
    if (slot.number == 0) continue;
    size_t at = slot.hash & (slots_.size() - 1);
    while (slots_[at].number != 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }
}

void StringTable::Clear() {
  bytes_.clear();
  if (bytes_.capacity() > kBytesKept) bytes_.shrink_to_fit();
  ends_.resize(1);
  assert(ends_.front() == 0);
  if (slots_.size() > kSlotsKept) {
    std::vector<Slot>(kSlotsInitial).swap(slots_);
    ends_.shrink_to_fit();
  } else {
    std::fill(slots_.begin(), slots_.end(), Slot{});
  }
}

}  // namespace neurontrace
