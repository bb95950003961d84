// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neurontrace {

// Where events were lost, in the order of their way from the runtime to an export. Values of both
// enums are on the wire and equal those of neurontrace.v1: never change one.
enum class LossPlace : uint8_t {
  kUnspecified = 0,
  // A core's ring overwrote them before the tap fetched them, which leaves holes in nc_local_id.
  kRuntimeRing = 1,
  // The buffer that tap and agent share had no room for them, or they were unreadable there.
  kTapBuffer = 2,
  // The agent could not decode them, or they exceeded a limit.
  kDecode = 3,
  // The agent had no room for them in memory.
  kAgentQueue = 4,
  // The agent's spool overwrote or damaged their chunks.
  kSpool = 5,
  // The aggregator refused their chunks.
  kWireRefusal = 6,
  // The aggregator's store has damaged or lost their chunks.
  kStore = 7,
  // The aggregator deleted their chunks on purpose.
  kRetention = 8,
};
// Why they were lost there.
enum class LossReason : uint8_t {
  // The place cannot say.
  kUnknown = 0,
  // The oldest made room for the newest.
  kOverwritten = 1,
  // The newest was refused.
  kFull = 2,
  // Bytes that could not be understood.
  kMalformed = 3,
  // Beyond a limit of lib/trace/limits.h.
  kLimit = 4,
  // The receiver will never accept it.
  kRefused = 5,
  // Deleted by a retention rule.
  kExpired = 6,
  // An event of a trace file without a usable time.
  kNoTime = 7,
};
inline constexpr LossReason kLossReasonMax = LossReason::kNoTime;

// Events that are known to be missing, with the place and reason. A plain value.
struct Loss {
  LossPlace place = LossPlace::kUnspecified;
  LossReason reason = LossReason::kUnknown;
  uint64_t events = 0;              // 0 with events_unknown
  bool events_unknown = false;      // the place cannot count what it lost
  uint64_t first_timestamp_ns = 0;  // raw host time around the loss; 0 where unknown
  uint64_t last_timestamp_ns = 0;
  std::string detail;

  friend bool operator==(const Loss&, const Loss&) = default;
};

// Returns the place, reason and number of a loss, which is all that running sums contain.
Loss WithoutTimes(const Loss& loss);

// Adds `loss` to `sums`, which has one entry for each place and reason: the sum of events, the
// union of the times and the latest detail. Sums saturate, as they may come from a hostile
// producer.
void AddLoss(const Loss& loss, std::vector<Loss>& sums);

// Return "runtime ring", "overwritten" and so on: labels of metrics, and text for people.
std::string_view ToString(LossPlace place);
std::string_view ToString(LossReason reason);

}  // namespace neurontrace
