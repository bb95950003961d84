// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

// Of files of options. What is over them is refused, with what is wrong.
namespace neurontrace::limits {

inline constexpr size_t kConfigFileBytesMax = 1 << 20;
inline constexpr size_t kConfigKeyBytesMax = 200;      // of one that is quoted in a message
inline constexpr size_t kConfigWordsBytesMax = 1'000;  // of what is said of an option's value

}  // namespace neurontrace::limits
