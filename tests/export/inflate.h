// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace neurontrace {

// How zlib's stream is wrapped.
enum class Wrapping { kGzip, kZlib };

// What one whole stream holds, by zlib itself; a test failure and an empty text where `packed` is
// none, or has bytes behind its end.
std::string Inflate(std::string_view packed, Wrapping wrapping);

}  // namespace neurontrace
