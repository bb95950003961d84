// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/clock/host_clocks.h"
#include "lib/trace/clock_evidence.h"

// The one question that is put to chronyd: how well it keeps CLOCK_REALTIME ("tracking", protocol 6
// of its commands). Pure functions, any thread.
namespace neurontrace {

// What of its answer matters, in seconds.
struct ChronyTracking {
  uint16_t stratum = 0;
  uint16_t leap_status = 0;        // 0 normal, 1 and 2 a leap second is near, 3 not synchronised
  uint64_t reference_time_ns = 0;  // when it last heard of its source, by REALTIME
  double correction_s = 0;         // what REALTIME still is off, as far as it knows
  double root_delay_s = 0;
  double root_dispersion_s = 0;
};

inline constexpr size_t kChronyPacketBytes = 104;

// As long as the answer: chronyd answers nothing shorter.
std::string EncodeTrackingRequest(uint32_t sequence);
// INVALID_ARGUMENT for what is no answer to the question with this number; UNAVAILABLE where
// chronyd refuses.
absl::StatusOr<ChronyTracking> DecodeTrackingReply(std::string_view packet, uint32_t sequence);

// What it says of UTC at `now`, a snapshot taken as the answer came; nullopt where it promises
// nothing: not synchronised, or near a leap second.
std::optional<UtcReading> UtcFromChrony(const ChronyTracking& tracking, const ClockSnapshot& now);

}  // namespace neurontrace
