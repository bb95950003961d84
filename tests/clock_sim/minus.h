// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// a - b in ns; of two times that lie less than 292 years apart.
inline double Minus(uint64_t a, uint64_t b) {
  return static_cast<double>(static_cast<int64_t>(a - b));
}

}  // namespace neurontrace
