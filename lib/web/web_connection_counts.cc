// SPDX-License-Identifier: Apache-2.0
#include "lib/web/web_connection_counts.h"

#include <cassert>

namespace neurontrace {

// Three quarters of all places are the most that one address can take.
bool WebConnectionCounts::Add(const std::string& address, size_t max) {
  constexpr size_t kPerFree = 3;
  const MutexLock lock(mutex_);
  const auto known = by_address_.find(address);
  const size_t of_address = known == by_address_.end() ? 0 : known->second;
  if (all_ >= max || of_address + 1 > kPerFree * (max - all_)) return false;
  ++all_;
  ++by_address_[address];
  return true;
}

void WebConnectionCounts::Remove(const std::string& address) {
  const MutexLock lock(mutex_);
  const auto known = by_address_.find(address);
  assert(known != by_address_.end() && all_ > 0);
  --all_;
  if (--known->second == 0) by_address_.erase(known);
}

}  // namespace neurontrace
