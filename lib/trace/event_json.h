// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/trace/event_chunk.h"

// Events in the JSON that the Neuron Runtime's fetch call returns: for exports and for people. Pure
// functions, any thread.
namespace neurontrace {

// Appends the value of a column with this type. Numbers that are not finite become null, as JSON
// cannot represent them.
void AppendJsonValue(ValueType type, const AttributeValue& value, std::string& out);

// Appends event number `event` of a chunk, decoded with attributes, as one JSON object: the
// standard keys in the runtime's order, then the other top-level keys. Values are reproduced
// exactly, including numbers in quotes; escapes in strings may be spelled differently, and an event
// without "data" gets an empty one. `nc_idx` is the stream's. A value of type kJson need not be
// JSON: if `is_json` is given and returns false for it, it is written as a string.
void AppendEventJson(const DecodedChunk& chunk, size_t event, uint32_t nc_idx, std::string& out,
                     bool (*is_json)(std::string_view) = nullptr);

}  // namespace neurontrace
