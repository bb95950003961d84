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

// Losses that a file lists one by one. Further ones are counted in a single warning.
inline constexpr size_t kLossWarningsMax = 10'000;

// Calls `add` for everything that a reader must know about what a file lacks, in the form of the
// vendor's warnings. `category` is "Capture", or "Missing Data" for each loss and for what makes
// the capture incomplete. `warnings` are those of the reading. The texts are valid during the call
// only. A pure function of the header.
void ForEachWarning(
    const TimelineHeader& header, const std::vector<std::string>& warnings,
    const std::function<void(std::string_view message, std::string_view category)>& add);

// Returns the warning about a time window with streams that begin before what the reader looks back
// to, or nullopt for any other window.
std::optional<std::string> WindowWarning(const TimelineReader& reader, uint64_t lookback_ns);

// Returns "2025-12-18 15:35:56.592459482 +0000 UTC", as the vendor writes times.
std::string VendorTimeText(uint64_t epoch_ns);

}  // namespace neurontrace
