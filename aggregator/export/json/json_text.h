// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace neurontrace {

// True where `text` is exactly one JSON value (RFC 8259) of valid UTF-8, nested at most 64 deep.
// What a chunk calls JSON need not be.
bool IsJson(std::string_view text);

// Appends `text` as a JSON string; each byte that is no UTF-8 becomes U+FFFD.
void AppendAsJsonString(std::string_view text, std::string& out);

}  // namespace neurontrace
