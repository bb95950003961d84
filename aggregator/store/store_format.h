// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// A constant: the version of everything in the store. Raised if an older build could misread what
// this one writes; an older build refuses a store with a higher number.
inline constexpr uint64_t kStoreFormatVersion = 1;

}  // namespace neurontrace
