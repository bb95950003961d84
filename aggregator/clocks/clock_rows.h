// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/align/core/capture_clocks.h"

// Encodes the clocks of a capture as the rows that are stored: one for each machine, device core
// and check of order (docs/formats/store.md). Decoding returns exactly what was encoded, and equal
// clocks give equal bytes. This is here because the store knows no clocks and align knows no store.
// Pure functions, any thread.
namespace neurontrace {

// Returns a row for each instance, then each device, then each check, in their order. Version and
// is_final are not included.
std::vector<std::string> EncodeClockRows(const CaptureClocks& clocks);

// Restores the clocks including `maps`. Fails with INVALID_ARGUMENT, and names the row, for
// anything that encoding does not write and for clocks that no fit can have given, as evaluating
// those could overflow.
absl::StatusOr<CaptureClocks> DecodeClockRows(const std::vector<std::string>& rows);

}  // namespace neurontrace
