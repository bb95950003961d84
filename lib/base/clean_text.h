// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace neurontrace {

// Of ASCII: what would move a cursor or begin a line where it is shown.
constexpr bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// Text from a process that is not trusted, fit for messages, logs and tables: valid UTF-8 without
// control characters ('?' in place of each byte that is neither), at most `bytes_max`, cut between
// characters.
std::string CleanText(std::string_view text, size_t bytes_max);

// Bytes of the valid UTF-8 sequence at the beginning of `text`, 0 if there is none (RFC 3629: no
// surrogates, no overlong forms, nothing over U+10FFFF).
size_t Utf8SequenceBytes(std::string_view text);

}  // namespace neurontrace
