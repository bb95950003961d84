// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// The format of everything in the store; raised when an older build could misread what this one
// writes. docs/formats/store.md has its history.
// From 2 on references to artifacts have a root: a build that knows but 1 would drop them.
inline constexpr uint64_t kStoreFormatVersion = 2;

}  // namespace neurontrace
