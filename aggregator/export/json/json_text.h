// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// Returns whether `text` is exactly one JSON value (RFC 8259) of valid UTF-8, nested at most 64
// deep and without unpaired surrogates. A chunk's value of type JSON need not be. A pure function.
// Takes linear time. Callers paste such a text into a file unchanged.
bool IsJson(std::string_view text);

// Appends `text` with each invalid byte replaced by U+FFFD. Protobuf, Parquet and JSON all demand
// valid UTF-8, while recorded texts are arbitrary bytes.
void AppendRepairedUtf8(std::string_view text, std::string& out);

// Appends `text` as a JSON string, with each invalid byte replaced by U+FFFD.
void AppendAsJsonString(std::string_view text, std::string& out);

// Append members of an object that has one before them: ,"key":value. Only AppendJsonKey accepts
// keys from outside this program; the others do not escape theirs.
void AppendJsonKey(std::string_view key, std::string& out);
void AppendJsonText(std::string_view key, std::string_view value, std::string& out);
// Writes all digits, without a locale and without an allocation: this is a hot path.
template <std::integral Number>
void AppendJsonNumber(std::string_view key, Number value, std::string& out) {
  char buffer[24];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out += ",\"";
  out += key;
  out += "\":";
  out.append(buffer, static_cast<size_t>(end - buffer));
}

// Appends the value of one of a record's attributes: numbers with all digits, JSON unchanged if it
// is valid and as a string otherwise.
void AppendAttributeValue(const ShapeKey& key, uint64_t value, const TimelineRecord& record,
                          std::string& out);

}  // namespace neurontrace
