// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neurontrace {

// Returns the text between <name ...> and the next </name> for each such element in a reply of an
// S3 service, in order; views into `xml`. Does not know comments, CDATA sections and nested
// elements of one name, which these replies do not have. Hostile text gives nonsense, and nothing
// worse. Not a general XML parser, which would be the larger risk. Pure, as all functions here.
std::vector<std::string_view> XmlElements(std::string_view xml, std::string_view name);
// Returns the text of the first such element with its entities resolved, or an empty text.
std::string XmlText(std::string_view xml, std::string_view name);

// Returns "2026-11-22T12:00:00.000Z" in nanoseconds since the epoch, without the fraction; 0 if the
// text is not a time.
uint64_t ParseS3Time(const std::string& text);

}  // namespace neurontrace
