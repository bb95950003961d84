// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neurontrace {

// Somebody with something to be read.
struct WaitingReader {
  size_t index = 0;         // whose
  uint64_t ns_to_full = 0;  // until what it is read from is full
  uint64_t last_turn = 0;   // in which it was read
};

// Who is read first in turn number `turn`: those whose buffers are full the soonest, since who is
// read first gets what room there is further on; but every second turn begins with the one that has
// waited longest, so that none starves. A pure function; equals keep their order.
inline std::vector<WaitingReader> ReadingOrder(std::vector<WaitingReader> waiting, uint64_t turn) {
  std::stable_sort(
      waiting.begin(), waiting.end(),
      [](const WaitingReader& a, const WaitingReader& b) { return a.ns_to_full < b.ns_to_full; });
  if (turn % 2 == 0) {
    const auto longest = std::min_element(
        waiting.begin(), waiting.end(),
        [](const WaitingReader& a, const WaitingReader& b) { return a.last_turn < b.last_turn; });
    if (longest != waiting.end()) std::rotate(waiting.begin(), longest, longest + 1);
  }
  return waiting;
}

}  // namespace neurontrace
