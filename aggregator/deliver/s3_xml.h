// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neurontrace {

// What stands between <name ...> and the next </name>, of each such element in a reply of an S3
// service, in order. Knows no comments, sections and elements of one name in each other, which
// those replies have not. Hostile text gives nonsense, and nothing worse.
std::vector<std::string_view> XmlElements(std::string_view xml, std::string_view name);
// Of the first one, with its entities resolved; empty where there is none.
std::string XmlText(std::string_view xml, std::string_view name);

// "2026-11-22T12:00:00.000Z" in nanoseconds since the epoch; 0 for what is none.
uint64_t ParseS3Time(const std::string& text);

}  // namespace neurontrace
