// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "aggregator/align/core/clock_model.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// What the reference's keeper knows of UTC: the strip of UTC over the reference time, as far as the
// sources of UTC on its own host promise. It relates a reading of UTC on another host to the
// reference. Optional: alignment works without it. A plain value.
struct ReferenceUtc {
  struct Epoch {
    uint32_t epoch = 0;
    ClockModel utc;  // x: reference time of this epoch, y: UTC; bounds hold if promises are kept
    std::vector<UtcSource> sources;  // that it rests on, the most trusted first
  };
  std::vector<Epoch> epochs;  // ascending

  // Returns nullptr if nothing is known of this epoch.
  const Epoch* Find(uint32_t epoch) const;
};

// Derives it from the keeper's own evidence, one element for each boot of its host. The keeper's
// exchanges are with itself and take no time: each states which reading of raw is which of the
// reference, and in which epoch. Readings that contradict more trusted ones are rejected and
// reported in the model's findings. Pure.
ReferenceUtc ReferenceUtcOf(std::span<const ClockEvidence> own);

// An interval of reference time. Both ends included.
struct ReferenceTimes {
  uint64_t earliest_ns = 0;
  uint64_t latest_ns = 0;
};
// Returns the reference times between which the reading was made; nullopt if it is too far from
// everything known. The interval includes the uncertainty of the reading and of the strip. Requires
// a sound reading (utc_trust.h).
std::optional<ReferenceTimes> ReferenceTimesOf(const ReferenceUtc::Epoch& epoch,
                                               const UtcReading& reading);

}  // namespace neurontrace
