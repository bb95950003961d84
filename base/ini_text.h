// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

// The words of one line of an INI file, as all files of neurontrace have them: `[section]`,
// `key = value`, and `#` or `;` before a comment. Pure.
namespace neurontrace {

// Without the blanks, tabs and carriage returns around it.
std::string_view TrimmedIni(std::string_view text);

// Whether nothing but a comment, or nothing at all, stands in trimmed text.
bool IsIniComment(std::string_view text);

// What stands behind the `=`: between quotes where it has some, else up to a comment that follows
// behind a blank. Nothing where a quote is not closed or something stands behind it.
std::optional<std::string_view> IniValueOf(std::string_view text);

}  // namespace neurontrace
