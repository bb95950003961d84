// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

// Amounts as people write them, by one rule for every program: KB, MB, GB, TB and PB are powers of
// 1000; KiB, MiB, GiB, TiB and PiB powers of 1024. Pure.
namespace neurontrace {

// Parses "2GB", "512MiB", "1.5 GiB", "4096" (bytes) or "0"; the unit also in lower case, its B may
// be left out ("4G" is of 1000, "4Gi" of 1024). Fails with INVALID_ARGUMENT for anything else, for
// a fraction of a byte and for 1e18 and more.
absl::StatusOr<uint64_t> ParseByteSize(std::string_view text);

// Returns what is wrong with a whole number, or "": it has decimal digits, no sign, and no 0 before
// them, which a parser may take for octal.
std::string CheckWholeNumber(const std::string& text);

}  // namespace neurontrace
