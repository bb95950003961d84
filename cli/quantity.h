// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "neurontrace/v1/vocabulary.pb.h"

// What people type for amounts, ranks and names with values. INVALID_ARGUMENT says what is
// understood. Pure functions.
namespace neurontrace::cli {

// As ParseByteSize, but with a unit and not 0.
absl::StatusOr<uint64_t> ParseBytes(std::string_view text);

// "10MB/s" or "10MB".
absl::StatusOr<uint64_t> ParseByteRate(std::string_view text);

// "2%" of one processor, in millionths: 20,000; above 0 and up to 100 %.
absl::StatusOr<uint32_t> ParseProcessorShare(std::string_view text);

// "0-7,64", both ends in, as one range for each item.
absl::StatusOr<std::vector<v1::GidRange>> ParseGidRanges(std::string_view text);

// "tier=gold"; the value may have further '=' and may be empty.
absl::StatusOr<v1::KeyValue> ParseKeyValue(std::string_view text);

// "all", "any" (0), "90%" or "90": how many percent of the workers have to be armed.
absl::StatusOr<uint32_t> ParseRequirement(std::string_view text);

}  // namespace neurontrace::cli
