// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/trace/clock_evidence.h"

// A batch of clock evidence as bytes, as it travels and as it is stored; docs/formats/clock.md has
// the layout. What is given comes back to the letter, in whatever order it is, where it makes
// sense: see CheckClockEvidence. Pure functions, any thread.
namespace neurontrace {

std::string EncodeClockEvidence(const ClockEvidence& evidence);

// INVALID_ARGUMENT, with the place, for anything that encoding does not write, and for what
// CheckClockEvidence refuses.
absl::StatusOr<ClockEvidence> DecodeClockEvidence(std::string_view bytes);

// INVALID_ARGUMENT for what cannot have been measured: more entries than a batch may have, an
// interval that ends before it begins, a kind or source that is none.
absl::Status CheckClockEvidence(const ClockEvidence& evidence);

// How many entries there are in all.
size_t CountClockEvidence(const ClockEvidence& evidence);

}  // namespace neurontrace
