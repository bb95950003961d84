// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/dice.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "lib/base/random.h"

namespace neurontrace {

Dice::Dice(uint64_t seed, uint64_t part, uint64_t member) {
  SeededRandom of_seed(seed);
  SeededRandom of_part(of_seed.Next64() ^ (part * 0x9e3779b97f4a7c15u));
  SeededRandom of_member(of_part.Next64() ^ (member * 0xbf58476d1ce4e5b9u));
  for (uint64_t& word : state_) word = of_member.Next64();
}

uint64_t Dice::Next64() {
  const uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Dice::Exponential(double mean) { return -mean * std::log(1.0 - Unit()); }

double Dice::Normal(double sigma) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - Unit()));
  return sigma * radius * std::cos(2.0 * std::numbers::pi * Unit());
}

double Dice::Pareto(double least, double alpha, double most) {
  return std::min(most, least * std::pow(1.0 - Unit(), -1.0 / alpha));
}

}  // namespace neurontrace
