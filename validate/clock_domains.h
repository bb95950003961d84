// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace neurontrace {

// Time lines that clocks are placed on, each with a zero of its own until it is found how two of
// them stand to each other. Nanoseconds modulo 2^64. One thread at a time.
class ClockDomains {
 public:
  struct Place {
    uint32_t line = 0;
    uint64_t shift_ns = 0;
  };

  // A line that nothing is known of.
  uint32_t Add();
  // Which line `line` is a part of, and what to add to its times to have that one's.
  Place Find(uint32_t line);
  // Time `a_ns` of one is time `b_ns` of the other. Without effect where they are related already.
  void Join(uint32_t a, uint64_t a_ns, uint32_t b, uint64_t b_ns);

 private:
  std::vector<Place> above_;  // by line: what it is a part of; itself where that is none
};

}  // namespace neurontrace
