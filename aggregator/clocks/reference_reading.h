// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "aggregator/align/reference_utc.h"
#include "aggregator/store/clock_evidence_store.h"

namespace neurontrace {

// What the keeper of the reference knew of UTC in a window, out of its own stored evidence. Errors
// of the store. Any thread.
absl::StatusOr<ReferenceUtc> ReadReferenceUtc(const ClockEvidenceStore& store,
                                              const RealtimeWindow& window);

}  // namespace neurontrace
