// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/trace/event.h"

namespace neurontrace {

// A JSON token that is no string, object or array, as an attribute value. Nothing for what no JSON
// writer means ("nul", "1x"). NaN, Infinity and -Infinity, which Python's and C++'s writers let
// slip into JSON, become strings of that text, so that nothing downstream has to know them.
struct JsonScalar {
  ValueType type = ValueType::kNull;
  AttributeValue value;  // text points into the token
};
std::optional<JsonScalar> ParseJsonScalar(std::string_view token);

// A token of a file in a message: clean and short.
std::string ShownToken(std::string_view token);

// True where `text` is one well-formed JSON value (nesting up to 64). It is to be kept as it is
// where `rewritten` stays empty. Else `rewritten` is to be kept: non-finite numbers stand between
// quotes there, and a value that was laid out over several lines is on one, without blanks.
bool CheckJson(std::string_view text, std::string& rewritten);

}  // namespace neurontrace
