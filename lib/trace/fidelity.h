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

// What the first two levels above 0 omit, as text. Neither omits an execution, a collective or a
// barrier; all further levels omit the host's steps of an execution, and more.
inline constexpr uint32_t kFidelityWithoutAllocations = 1;
inline constexpr uint32_t kFidelityWithoutTensorCalls = 2;
inline constexpr std::string_view kAllocationsOmitted = "allocation events";
inline constexpr std::string_view kTensorCallsOmitted =
    "allocation events, tensor reads and writes, copies";
// The text of such an entry: `kOmittedBegin`, what is omitted, `kOmittedReason`, the budget.
inline constexpr std::string_view kOmittedBegin = "without ";
inline constexpr std::string_view kOmittedReason = " because the budget of ";

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
// Returns the level that omits what such an entry says; for anything but the texts above, the level
// after kFidelityWithoutTensorCalls, which stands for it and all further ones.
inline uint32_t FidelityLevelOf(const Loss& left_out) {
  std::string_view text = left_out.detail;
  if (!text.starts_with(kOmittedBegin)) return kFidelityWithoutTensorCalls + 1;
  text = text.substr(kOmittedBegin.size(), text.find(kOmittedReason) - kOmittedBegin.size());
  if (text == kAllocationsOmitted) return kFidelityWithoutAllocations;
  if (text == kTensorCallsOmitted) return kFidelityWithoutTensorCalls;
  return kFidelityWithoutTensorCalls + 1;
}

}  // namespace neurontrace
