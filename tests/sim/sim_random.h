// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lib/base/random.h"

namespace neurontrace {

// The dice of a simulation: everything that happens by chance comes from the seed. One thread.
class SimRandom final : public Random {
 public:
  explicit SimRandom(uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15u + 1) {}

  uint64_t Next64() override { return random_.Next64(); }
  // From `low` to `high`, both included.
  uint64_t Between(uint64_t low, uint64_t high) { return low + Next64() % (high - low + 1); }
  // True `per_mille` times of a thousand.
  bool Chance(uint32_t per_mille) { return Next64() % 1000 < per_mille; }

 private:
  SeededRandom random_;
};

}  // namespace neurontrace
