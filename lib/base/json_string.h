// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace neurontrace {

// Appends `text`, which must be valid UTF-8, as a JSON string with its quotes. Control characters,
// quotes and backslashes are escaped, nothing else (RFC 8259, section 7). Pure.
void AppendJsonString(std::string_view text, std::string& out);

// Returns any bytes as a JSON string with its quotes; each byte that is not part of valid UTF-8
// becomes "?". Pure.
std::string JsonText(std::string_view text);

}  // namespace neurontrace
