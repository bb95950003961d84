// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

// Amounts as people write them, by one rule for every program: KB, MB, GB, TB and PB are powers of
// 1000; KiB, MiB, GiB, TiB and PiB powers of 1024. The functions are pure and may be called from
// any thread.
namespace neurontrace {

// Parses "2GB", "512MiB", "1.5 GiB", "4096" (bytes) or "0" and returns bytes. The unit may be in
// lower case, and its B may be omitted ("4G" is of 1000, "4Gi" of 1024). Fails with
// INVALID_ARGUMENT for anything else, for a fraction of a byte and for 1e18 and more.
absl::StatusOr<uint64_t> ParseByteSize(std::string_view text);

// Returns what is wrong with a whole number, or "". Accepts decimal digits that fit 64 bits,
// without a sign and without a leading 0, which CLI11 may take for octal. The form fits CLI11's
// check().
std::string CheckWholeNumber(const std::string& text);

}  // namespace neurontrace
