// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "aggregator/export/rows/event_attributes.h"

// The pieces of trace-event JSON that are not plain JSON: docs/formats/chrome_json.md.
namespace neurontrace {

// Nanoseconds as the format's microseconds, three digits behind the point: "-1.500".
void AppendMicroseconds(int64_t ns, std::string& out);

// ,"name":value of an argument. Whole numbers that a double cannot hold become texts.
void AppendArgument(const EventAttribute& attribute, std::string& out);
// The value alone.
void AppendArgumentValue(const EventAttribute& attribute, std::string& out);

// ,"name":value of a counter: a number whatever it costs in digits.
void AppendCounterValue(std::string_view name, const ShapeKey& key, uint64_t value,
                        std::string& out);

}  // namespace neurontrace
