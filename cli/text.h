// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// How things read for people and scripts. Pure functions.
namespace neurontrace::cli {

// A left-aligned table with a header line; columns of nothing but numbers are right-aligned. Ends
// in a newline. A table wider than `columns` (0: any width) has its widest cells cut at their end
// with "…", and after that its lines.
std::string FormatTable(const std::vector<std::string>& header,
                        const std::vector<std::vector<std::string>>& rows, size_t columns = 0);

// The message in proto3's JSON with the field names of the .proto files, every field present,
// 64-bit integers as strings (as that mapping has it). Ends in a newline.
std::string FormatJson(const google::protobuf::Message& message);
// The same on one line.
std::string FormatJsonLine(const google::protobuf::Message& message);

// "1.5s", "20 ms", "-" for 0.
std::string FormatDuration(uint64_t ns);
// "1,234,567".
std::string FormatCount(uint64_t count);
// "1 worker", "1,024 workers"; `many` where an s is not enough.
std::string FormatCounted(uint64_t count, std::string_view one, std::string_view many = "");
// "12", "unknown", "12 or more": losses; `is_unknown` says that there are more.
std::string FormatLost(uint64_t count, bool is_unknown);
// "1.2 GiB".
std::string FormatBytes(uint64_t bytes);
// "2026-11-21 08:52:03Z"; "-" for 0.
std::string FormatTime(uint64_t realtime_ns);

// "30s", "500ms", "2m", "1h", "7d", "1.5s", and 0. A number without a unit is not a duration.
// INVALID_ARGUMENT says what is understood.
absl::StatusOr<uint64_t> ParseDuration(std::string_view text);

// Splits at commas, trims, drops what is empty.
std::vector<std::string> SplitList(const std::vector<std::string>& values);

}  // namespace neurontrace::cli
