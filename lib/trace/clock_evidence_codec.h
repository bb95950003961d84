// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/trace/clock_evidence.h"

// A batch of clock evidence as bytes, on the wire and in the store; docs/formats/clock.md has the
// layout. Decoding returns what was encoded, bit for bit, if CheckClockEvidence accepts it; lists
// need not be sorted. Pure functions, any thread.
namespace neurontrace {

std::string EncodeClockEvidence(const ClockEvidence& evidence);

// Fails with INVALID_ARGUMENT, naming the place, for bytes that EncodeClockEvidence does not write,
// and for evidence that CheckClockEvidence refuses.
absl::StatusOr<ClockEvidence> DecodeClockEvidence(std::string_view bytes);

// Fails with INVALID_ARGUMENT for evidence that cannot have been measured: more entries than a
// batch may have, an interval that ends before it begins, an unknown kind or source.
absl::Status CheckClockEvidence(const ClockEvidence& evidence);

// Returns the number of entries in all lists.
size_t CountClockEvidence(const ClockEvidence& evidence);

}  // namespace neurontrace
