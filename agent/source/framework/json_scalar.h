// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/trace/event.h"

namespace neurontrace {

// A JSON token that is no string, object or array, as an attribute value. NaN, Infinity and
// -Infinity, which the JSON writers of Python and C++ may produce, become strings of that text, so
// that nothing downstream needs to handle them.
struct JsonScalar {
  ValueType type = ValueType::kNull;
  AttributeValue value;  // text points into the token
};
// Parses such a token. Returns nothing for text that is no JSON ("nul", "1x"). A number that its
// type cannot reproduce exactly, such as "1.50" or one beyond 64 bits, becomes kJson with its text.
// Pure.
std::optional<JsonScalar> ParseJsonScalar(std::string_view token);

// Returns a token of a file for use in a message: valid UTF-8 and short.
std::string ShownToken(std::string_view token);

// Returns true if `text` is one well-formed JSON value with nesting up to 64. If `rewritten` stays
// empty, the text is to be kept as it is. Otherwise `rewritten` is to be kept instead: it has
// non-finite numbers in quotation marks, and a value that was laid out over several lines without
// its blanks. Pure.
bool CheckJson(std::string_view text, std::string& rewritten);

}  // namespace neurontrace
