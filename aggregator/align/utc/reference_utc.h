// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "aggregator/align/core/clock_model.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// What the keeper of the reference knows of UTC: the strip in which UTC runs over the reference, as
// far as the sources of UTC on its own host promise. It is what makes a reading of UTC on another
// host say something of the reference. Plain values; nobody needs one.
struct ReferenceUtc {
  struct Epoch {
    uint32_t epoch = 0;
    ClockModel utc;  // x: the reference of this epoch, y: UTC; bounds hold if promises are kept
    std::vector<UtcSource> sources;  // whose promises it rests on, the most trusted first
  };
  std::vector<Epoch> epochs;  // ascending

  // nullptr: of this epoch nothing is known.
  const Epoch* Find(uint32_t epoch) const;
};

// From the keeper's own evidence, an element for each boot of its host. Its exchanges are with
// itself, of no length: each says which reading of raw is which of the reference, and in which
// epoch. Readings that contradict more trusted ones are left out, and told in the model's findings.
ReferenceUtc ReferenceUtcOf(std::span<const ClockEvidence> own);

// When by the reference UTC was from one time to another: no earlier and no later than this.
struct ReferenceTimes {
  uint64_t earliest_ns = 0;
  uint64_t latest_ns = 0;
};
// nullopt: too far from all that is known.
std::optional<ReferenceTimes> ReferenceTimesOf(const ReferenceUtc::Epoch& epoch,
                                               const UtcReading& reading);

}  // namespace neurontrace
