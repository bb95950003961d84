// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// The format of everything in the store; raised when an older build could misread what this one
// writes.
inline constexpr uint64_t kStoreFormatVersion = 1;

}  // namespace neurontrace
