// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// Where unpredictable bits come from. Abstract so tests are repeatable. Calls may come from any
// thread.
class Random {
 public:
  virtual ~Random() = default;
  virtual uint64_t Next64() = 0;
};

// getrandom(2).
class SystemRandom final : public Random {
 public:
  uint64_t Next64() override;
};

// SplitMix64 from a seed (public domain algorithm of Sebastiano Vigna). One thread only.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed) {}
  uint64_t Next64() override;

 private:
  uint64_t state_;
};

}  // namespace neurontrace
