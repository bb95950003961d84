// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aggregator/export/exporter.h"

namespace neurontrace {

// Losses that a file tells one by one.
inline constexpr size_t kLossWarningsMax = 10'000;

// All that is to be said of what a file lacks, as the vendor's warnings: `category` is "Capture",
// or "Missing Data" for each loss and for what makes the capture incomplete. `warnings` are those
// of the reading. The words are valid during the call.
void ForEachWarning(
    const TimelineHeader& header, const std::vector<std::string>& warnings,
    const std::function<void(std::string_view message, std::string_view category)>& add);

// What is to be said of a time window that begins later than the reader looks back from; nothing of
// any other.
std::optional<std::string> WindowWarning(const TimelineReader& reader, uint64_t lookback_ns);

// "2025-12-18 15:35:56.592459482 +0000 UTC", as the vendor writes times.
std::string VendorTimeText(uint64_t epoch_ns);

}  // namespace neurontrace
