// SPDX-License-Identifier: Apache-2.0
#include "validate/intern_table.h"

#include <utility>

#include "base/clean_text.h"
#include "validate/limits.h"

namespace neurontrace {
namespace {

constexpr size_t kLowSlack = 16;

}  // namespace

uint64_t HashText(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash == 0 ? 1 : hash;
}

InternTable::Text& InternTable::At(uint64_t iid) {
  if (iid < low_.size()) return low_[iid];
  // Numbers that leave gaps stand apart, so that a large one takes no room for all below it.
  const auto known = high_.find(iid);
  if (known != high_.end()) return known->second;
  if (iid > 2 * size_ + kLowSlack) return high_[iid];
  const size_t before = low_.size();
  low_.resize(iid + 1);
  for (size_t i = before; i < low_.size() && !high_.empty(); ++i) {
    const auto apart = high_.find(i);
    if (apart == high_.end()) continue;
    low_[i] = std::move(apart->second);
    high_.erase(apart);
  }
  return low_[iid];
}

bool InternTable::Add(uint64_t iid, std::string_view text, bool& is_new) {
  Text& entry = At(iid);
  const uint64_t hash = HashText(text);
  is_new = entry.hash == 0;
  if (!is_new) return entry.hash == hash;
  entry.hash = hash;
  entry.beginning = CleanText(text, validate_limits::kNameBytesMax);
  ++size_;
  return true;
}

const InternTable::Text* InternTable::Find(uint64_t iid) const {
  if (iid < low_.size()) return low_[iid].hash == 0 ? nullptr : &low_[iid];
  if (high_.empty()) return nullptr;
  const auto found = high_.find(iid);
  return found == high_.end() ? nullptr : &found->second;
}

}  // namespace neurontrace
