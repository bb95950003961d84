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
// in which every character is visible, at most `bytes_max` bytes, cut between characters. Each byte
// that is not part of valid UTF-8, and each control character (C0, DEL and C1), becomes '?'. Each
// character that is invisible or changes the order of those around it (Unicode's categories Cf, Zl
// and Zp) becomes "\u202e" or "\u{e0001}", as on the page. Applied twice, it changes nothing more.
// Pure; never fails.
std::string CleanText(std::string_view text, size_t bytes_max);

// Returns the length in bytes of the UTF-8 sequence at the beginning of `text`, or 0 if it is not
// valid (RFC 3629: no surrogates, no overlong forms, nothing over U+10FFFF) or `text` is empty.
size_t Utf8SequenceBytes(std::string_view text);

}  // namespace neurontrace
