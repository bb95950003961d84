// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>

namespace neurontrace {

// Numbers that depend on a seed and a place (step, barrier, rank …) and on nothing else: every
// process that asks for the same place gets the same number, in whatever order it asks.
class PlacedRandom {
 public:
  explicit PlacedRandom(uint64_t seed) : seed_(seed) {}

  uint64_t Bits(std::initializer_list<uint64_t> place) const {
    uint64_t hash = seed_;
    for (const uint64_t part : place) hash = Scramble(hash ^ Scramble(part + 0x9e3779b97f4a7c15));
    return hash;
  }
  // In [0, 1).
  double Unit(std::initializer_list<uint64_t> place) const {
    return static_cast<double>(Bits(place) >> 11) * 0x1p-53;
  }
  double Between(double low, double high, std::initializer_list<uint64_t> place) const {
    return low + (high - low) * Unit(place);
  }

 private:
  static uint64_t Scramble(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
  }
  uint64_t seed_;
};

}  // namespace neurontrace
