// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// True where `text` is exactly one JSON value (RFC 8259) of valid UTF-8, nested at most 64 deep and
// without halves of surrogate pairs.
// What a chunk calls JSON need not be.
bool IsJson(std::string_view text);

// Appends `text`; each byte that is no UTF-8 becomes U+FFFD.
void AppendRepairedUtf8(std::string_view text, std::string& out);

// Appends `text` as a JSON string; each byte that is no UTF-8 becomes U+FFFD.
void AppendAsJsonString(std::string_view text, std::string& out);

// Members of an object that has one before them: ,"key":value. Only AppendJsonKey takes keys that
// come from outside.
void AppendJsonKey(std::string_view key, std::string& out);
void AppendJsonText(std::string_view key, std::string_view value, std::string& out);
template <std::integral Number>
void AppendJsonNumber(std::string_view key, Number value, std::string& out) {
  char buffer[24];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out += ",\"";
  out += key;
  out += "\":";
  out.append(buffer, static_cast<size_t>(end - buffer));
}

// The value of one of a record's attributes: numbers in full, JSON as it is if it is some.
void AppendAttributeValue(const ShapeKey& key, uint64_t value, const TimelineRecord& record,
                          std::string& out);

}  // namespace neurontrace
