// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

// Reads the parts of a browser's request. Pure functions; their texts are the client's and may
// contain anything.
namespace neurontrace {

// Returns the value of the cookie, or an empty text.
std::string_view CookieValue(std::string_view cookies, std::string_view name);
// Returns the value of a parameter of the query, not decoded, or an empty text.
std::string_view ParameterOf(std::string_view query, std::string_view name);
// Returns the value of a parameter of the query, decoded, or an empty text.
std::string DecodedParameterOf(std::string_view query, std::string_view name);
// Returns the query without a parameter, and with the others as they are.
std::string WithoutParameter(std::string_view query, std::string_view name);
// The host of "HOST:PORT" in lower case.
std::string HostName(std::string_view host);
// Returns whether the text is UTF-8, which messages of gRPC need.
bool IsUtf8(std::string_view text);

}  // namespace neurontrace
