// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "lib/base/mutex.h"

namespace neurontrace {

// How many connections each address has. Any thread.
class WebConnectionCounts {
 public:
  // Counts a connection of an address. Returns false if there are `max` already, or if the address
  // would hold more than three times as many as are free.
  bool Add(const std::string& address, size_t max);
  // Called once for each connection that Add counted.
  void Remove(const std::string& address);

 private:
  Mutex mutex_;
  size_t all_ NT_GUARDED_BY(mutex_) = 0;
  std::map<std::string, size_t> by_address_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
