// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/clock/host_clocks.h"
#include "lib/trace/clock_evidence.h"

// Encodes and decodes the one command that is sent to chronyd, "tracking" of command protocol 6,
// which reports how well it keeps CLOCK_REALTIME. The layout is that of chrony's candm.h. Pure
// functions; any thread.
namespace neurontrace {

// The fields of the answer that are used. Times are in seconds.
struct ChronyTracking {
  uint16_t stratum = 0;
  uint16_t leap_status = 0;        // 0 normal, 1 and 2 a leap second is near, 3 not synchronised
  uint64_t reference_time_ns = 0;  // when it last heard of its source, by REALTIME
  double correction_s = 0;         // what REALTIME still is off, as far as it knows
  double root_delay_s = 0;
  double root_dispersion_s = 0;
};

// The length of an answer, and of a request with its padding.
inline constexpr size_t kChronyPacketBytes = 104;

// Returns a request. It is padded to the length of the answer: chronyd does not answer shorter
// ones, so that it cannot be used to amplify traffic.
std::string EncodeTrackingRequest(uint32_t sequence);
// Decodes an answer to the request with this sequence number. Fails with INVALID_ARGUMENT for any
// other packet, and with UNAVAILABLE if chronyd refuses.
absl::StatusOr<ChronyTracking> DecodeTrackingReply(std::string_view packet, uint32_t sequence);

// Returns the interval that contains UTC at `now`, a snapshot taken as the answer arrived. The
// bound is |correction| + root dispersion + root delay / 2, as chrony's documentation states for
// the clock error, plus 50 ppm for the time since the last update. Returns nothing if chronyd is
// not synchronised or a leap second is near.
std::optional<UtcReading> UtcFromChrony(const ChronyTracking& tracking, const ClockSnapshot& now);

}  // namespace neurontrace
