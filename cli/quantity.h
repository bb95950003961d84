// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "neurontrace/v1/vocabulary.pb.h"

// Parsers of amounts, ranks and names with values that people type as options of captures and
// exports. They fail with INVALID_ARGUMENT and a description of what is accepted. Pure functions.
namespace neurontrace::cli {

// Parses as ParseByteSize does, but requires a unit and a size above 0.
absl::StatusOr<uint64_t> ParseBytes(std::string_view text);

// Parses "10MB/s" or "10MB" and returns bytes per second. A unit is required, as in ParseBytes.
absl::StatusOr<uint64_t> ParseByteRate(std::string_view text);

// Parses "2%" of one processor and returns millionths: 20,000. Above 0 and up to 100 %.
absl::StatusOr<uint32_t> ParseProcessorShare(std::string_view text);

// Parses "0-7,64", both ends included, and returns one range for each item.
absl::StatusOr<std::vector<v1::GidRange>> ParseGidRanges(std::string_view text);

// Parses "tier=gold"; the value may contain further '=' and may be empty.
absl::StatusOr<v1::KeyValue> ParseKeyValue(std::string_view text);

// Parses "all", "any" (0), "90%" or "90" and returns how many percent of the workers must be armed.
absl::StatusOr<uint32_t> ParseRequirement(std::string_view text);

// Parses the duration of an option and returns ns. Refuses 0, which the aggregator would understand
// as unlimited; the error names the option.
absl::StatusOr<uint64_t> ParseSpan(std::string_view option, std::string_view text);

}  // namespace neurontrace::cli
