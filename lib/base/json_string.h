// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace neurontrace {

// Appends `text` (UTF-8) as a JSON string with its quotes. Control characters, quotes and
// backslashes are escaped, nothing else (RFC 8259, section 7).
void AppendJsonString(std::string_view text, std::string& out);

// Any bytes as a JSON string with its quotes: those that are no UTF-8 become "?".
std::string JsonText(std::string_view text);

}  // namespace neurontrace
