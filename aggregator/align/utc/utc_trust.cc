// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/utc/utc_trust.h"

#include <algorithm>

#include "aggregator/align/core/wide.h"

namespace neurontrace {

std::string_view NameOf(UtcSource source) {
  switch (source) {
    case UtcSource::kPhc:
      return "phc";
    case UtcSource::kClockBound:
      return "clockbound";
    case UtcSource::kChrony:
      return "chrony";
    case UtcSource::kUnspecified:
      break;
  }
  return "utc";
}

// Readings come from agents, so times beyond the arithmetic of the fits are refused here.
bool IsSound(const UtcReading& reading) {
  // A source that knows UTC only to 10 s contributes nothing.
  constexpr uint64_t kWidthMaxNs = 10'000'000'000;
  const bool is_known = std::find(kUtcSourcesByTrust.begin(), kUtcSourcesByTrust.end(),
                                  reading.source) != kUtcSourcesByTrust.end();
  return is_known && reading.raw_ns < kEvidenceTimeMaxNs &&
         reading.utc_latest_ns < kEvidenceTimeMaxNs && reading.utc_earliest_ns > 0 &&
         reading.utc_earliest_ns <= reading.utc_latest_ns &&
         reading.utc_latest_ns - reading.utc_earliest_ns <= kWidthMaxNs;
}

}  // namespace neurontrace
