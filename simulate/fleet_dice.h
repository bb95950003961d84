// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// The chance of one part of the simulated fleet: SplitMix64 (Steele, Lea and Flood, 2014), because
// a rank's state is then one word. Equal names give equal draws, whatever other parts draw. One
// thread.
class FleetDice {
 public:
  FleetDice() = default;
  // `part` and `member` name what the draws are for, within `seed`.
  FleetDice(uint64_t seed, uint64_t part, uint64_t member)
      : state_(Mix(Mix(Mix(seed) + part) + member)) {}

  uint64_t Next64() { return Mix(state_ += 0x9e3779b97f4a7c15u); }
  // In [0, 1).
  double Unit() { return static_cast<double>(Next64() >> 11) * 0x1p-53; }
  double Between(double low, double high) { return low + (high - low) * Unit(); }
  // Nearly normal, of standard deviation 1: the sum of four uniform numbers, within 3.5.
  double Normal() {
    const uint64_t bits = Next64();
    const auto part = [bits](int shift) { return static_cast<double>((bits >> shift) & 0xffff); };
    constexpr double kMean = 2.0 * 65'535;
    constexpr double kDeviation = 65'536 * 0.5773502691896258;  // of four: sqrt(4 / 12)
    return (part(0) + part(16) + part(32) + part(48) - kMean) / kDeviation;
  }

 private:
  static uint64_t Mix(uint64_t word) {
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return word ^ (word >> 31);
  }

  uint64_t state_ = 0;
};

}  // namespace neurontrace
