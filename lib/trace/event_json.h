// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/trace/event_chunk.h"

// Events back to the JSON that the Neuron Runtime's fetch call gives: for exports and for people.
namespace neurontrace {

// Appends the value of a column with this type; what is not finite (JSON has no word for it)
// becomes null.
void AppendJsonValue(ValueType type, const AttributeValue& value, std::string& out);

// Appends event number `event` of a chunk, decoded with attributes, as one JSON object: the
// standard keys in the runtime's order, then whatever else stood beside them. Values come back to
// the letter, numbers in quotes included; escapes in strings may be spelled another way, and an
// event that had no "data" gets an empty one. `nc_idx` is the stream's. What a chunk calls JSON
// need not be: where `is_json` is given and says no of it, it is written as a text.
void AppendEventJson(const DecodedChunk& chunk, size_t event, uint32_t nc_idx, std::string& out,
                     bool (*is_json)(std::string_view) = nullptr);

}  // namespace neurontrace
