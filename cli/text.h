// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// Values as text for people and scripts, used by every command. Pure functions; sizes are in units
// of 1,024, counts have commas, times are UTC.
namespace neurontrace::cli {

// Returns a left-aligned table with a header line; columns of numbers only are right-aligned. Ends
// in a newline. Cells are cleaned (CleanText). In a table wider than `columns` (0: any width) the
// widest cells are cut at their end with "…", and then its lines.
std::string FormatTable(const std::vector<std::string>& header,
                        const std::vector<std::vector<std::string>>& rows, size_t columns = 0);

// Returns the message in proto3's JSON with the field names of the .proto files and every field
// present. 64-bit integers are strings, as that mapping demands. Ends in a newline. A message that
// cannot be converted becomes {"error": TEXT}.
std::string FormatJson(const google::protobuf::Message& message);
// Returns the same on one line.
std::string FormatJsonLine(const google::protobuf::Message& message);

// Returns "1.5s", "20 ms", "-" for 0.
std::string FormatDuration(uint64_t ns);
// Returns "1,234,567".
std::string FormatCount(uint64_t count);
// Returns "1 worker", "1,024 workers"; `many` is the plural if an s is not enough.
std::string FormatCounted(uint64_t count, std::string_view one, std::string_view many = "");
// Returns a number of losses: "12", "unknown", "12 or more"; `is_unknown`: there are more.
std::string FormatLost(uint64_t count, bool is_unknown);
// Returns "1.2 GiB".
std::string FormatBytes(uint64_t bytes);
// Returns "2026-11-21 08:52:03Z"; "-" for 0.
std::string FormatTime(uint64_t realtime_ns);

// Parses "30s", "500ms", "2m", "1h", "7d", "1.5s", and 0, and returns ns. A number without a unit
// is not a duration. Fails with INVALID_ARGUMENT and a description of what is accepted.
absl::StatusOr<uint64_t> ParseDuration(std::string_view text);

// Splits each value at commas, trims blanks, and drops empty items.
std::vector<std::string> SplitList(const std::vector<std::string>& values);

}  // namespace neurontrace::cli
