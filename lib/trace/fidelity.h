// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "lib/trace/loss.h"

// How a trace states that less was recorded than its capture asks for, because the capture's budget
// was spent. docs/formats/chunk.md defines the texts, decision 0020 the policy. Pure functions.
namespace neurontrace {

// The type of the instant in each core's stream at which its fidelity changes, and the keys of its
// data.
inline constexpr std::string_view kFidelityEventType = "neurontrace.fidelity";
inline constexpr std::string_view kFidelityLevelKey = "level";  // 0: everything that was asked for
inline constexpr std::string_view kFidelityReasonKey = "reason";
inline constexpr std::string_view kFidelityLeavesOutKey = "leaves_out";      // empty at level 0
inline constexpr std::string_view kFidelityCorePpmKey = "core_ppm";          // of one processor
inline constexpr std::string_view kFidelityBytesKey = "bytes_per_second";    // of chunks
inline constexpr std::string_view kFidelityUnrecordedKey = "unrecorded_ns";  // no trace ran

// Returns the entry of a stream's account for a span of time in which events were left out: a loss
// of no events, with a text. Nothing is lost by it. No other loss has this place and reason.
inline Loss LeftOutFromTo(uint64_t from_ns, uint64_t to_ns, std::string words) {
  return {.place = LossPlace::kRuntimeRing,
          .reason = LossReason::kLimit,
          .first_timestamp_ns = from_ns,
          .last_timestamp_ns = to_ns,
          .detail = std::move(words)};
}
// Returns whether a loss is such an entry.
inline bool IsLeftOut(const Loss& loss) {
  return loss.place == LossPlace::kRuntimeRing && loss.reason == LossReason::kLimit &&
         loss.events == 0 && !loss.events_unknown;
}

}  // namespace neurontrace
