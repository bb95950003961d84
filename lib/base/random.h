// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The implementations are here because they are a function each.
namespace neurontrace {

// A source of unpredictable bits. Abstract so that tests are repeatable. Unless a class says
// otherwise, any thread may call it.
class Random {
 public:
  virtual ~Random() = default;
  // Returns 64 uniformly distributed bits. Never fails.
  virtual uint64_t Next64() = 0;
};

// Bits from getrandom(2), fit for keys and identities. Any thread.
class SystemRandom final : public Random {
 public:
  uint64_t Next64() override;
};

// SplitMix64 from a seed: equal seeds give equal numbers. For tests and simulations, never for
// keys. One thread.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed) {}
  uint64_t Next64() override;

 private:
  uint64_t state_;
};

}  // namespace neurontrace
