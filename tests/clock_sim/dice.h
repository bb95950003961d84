// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// The chance of one part of the clock simulation: xoshiro256++ (public domain algorithm of Blackman
// and Vigna), because a table takes some hundred million draws. The same names give the same
// draws, and parts with different names do not disturb each other. One thread.
class Dice {
 public:
  // `part` and `member` name what the draws are for, within `seed`.
  explicit Dice(uint64_t seed, uint64_t part = 0, uint64_t member = 0);

  uint64_t Next64();
  // In [0, 1).
  double Unit() { return static_cast<double>(Next64() >> 11) * 0x1p-53; }
  double Between(double low, double high) { return low + (high - low) * Unit(); }
  bool Chance(double probability) { return Unit() < probability; }
  double Exponential(double mean);
  double Normal(double sigma);
  // At least `least`, P(more than x) = (least / x)^alpha, cut off at `most`.
  double Pareto(double least, double alpha, double most);

 private:
  uint64_t state_[4];
};

}  // namespace neurontrace
