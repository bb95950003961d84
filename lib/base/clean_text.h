// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace neurontrace {

// Returns true for the ASCII control characters, which move a terminal's cursor or forge a line of
// a log.
constexpr bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// Returns text from an untrusted process in a form fit for messages, logs and tables: valid UTF-8
// without control characters (C0, DEL and C1), at most `bytes_max` bytes, cut between characters.
// Each byte that is not part of valid UTF-8, and each control character, becomes '?'. Pure; never
// fails.
std::string CleanText(std::string_view text, size_t bytes_max);

// Returns the length in bytes of the UTF-8 sequence at the beginning of `text`, or 0 if it is not
// valid (RFC 3629: no surrogates, no overlong forms, nothing over U+10FFFF) or `text` is empty.
size_t Utf8SequenceBytes(std::string_view text);

}  // namespace neurontrace
