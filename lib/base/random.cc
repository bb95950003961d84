// SPDX-License-Identifier: Apache-2.0
#include "lib/base/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

namespace neurontrace {

uint64_t SystemRandom::Next64() {
  uint64_t value = 0;
  auto* out = reinterpret_cast<char*>(&value);
  size_t have = 0;
  while (have < sizeof(value)) {
    // Blocks only until the kernel's pool is initialised, early at boot.
    const ssize_t n = getrandom(out + have, sizeof(value) - have, 0);
    if (n > 0) {
      have += static_cast<size_t>(n);
    } else if (n < 0 && errno != EINTR) {
      // A kernel without getrandom(2) is older than any this runs on.
      abort();
    }
  }
  return value;
}

uint64_t SeededRandom::Next64() {
  // The constants are those of splitmix64.c by Sebastiano Vigna (public domain,
  // https://prng.di.unimi.it/splitmix64.c).
  state_ += 0x9e3779b97f4a7c15u;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace neurontrace
