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
  kRuntimeRing = 1,
  kTapBuffer = 2,
  kDecode = 3,
  kAgentQueue = 4,
  kSpool = 5,
  kWireRefusal = 6,
  kStore = 7,
  kRetention = 8,
};
// Why they were lost there.
enum class LossReason : uint8_t {
  kUnknown = 0,
  kOverwritten = 1,
  kFull = 2,
  kMalformed = 3,
  kLimit = 4,
  kRefused = 5,
  kExpired = 6,
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
