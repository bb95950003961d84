// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/loss.h"

#include <algorithm>

namespace neurontrace {

// The detail is dropped too: it is about one occurrence.
Loss WithoutTimes(const Loss& loss) {
  return {.place = loss.place,
          .reason = loss.reason,
          .events = loss.events,
          .events_unknown = loss.events_unknown};
}

// A linear search: there are at most a few dozen pairs of place and reason.
void AddLoss(const Loss& loss, std::vector<Loss>& sums) {
  const auto same = std::find_if(sums.begin(), sums.end(), [&](const Loss& other) {
    return other.place == loss.place && other.reason == loss.reason;
  });
  if (same == sums.end()) {
    sums.push_back(loss);
    return;
  }
  same->events = same->events > UINT64_MAX - loss.events ? UINT64_MAX : same->events + loss.events;
  same->events_unknown = same->events_unknown || loss.events_unknown;
  // 0 means unknown, and must not become the earliest time.
  if (loss.first_timestamp_ns != 0 &&
      (same->first_timestamp_ns == 0 || loss.first_timestamp_ns < same->first_timestamp_ns)) {
    same->first_timestamp_ns = loss.first_timestamp_ns;
  }
  same->last_timestamp_ns = std::max(same->last_timestamp_ns, loss.last_timestamp_ns);
  if (!loss.detail.empty()) same->detail = loss.detail;
}

// Values of a later version are kept as they came: such a place is shown as unspecified, such a
// reason as unknown.
std::string_view ToString(LossPlace place) {
  switch (place) {
    case LossPlace::kUnspecified:
      return "unspecified";
    case LossPlace::kRuntimeRing:
      return "runtime ring";
    case LossPlace::kTapBuffer:
      return "tap buffer";
    case LossPlace::kDecode:
      return "decode";
    case LossPlace::kAgentQueue:
      return "agent queue";
    case LossPlace::kSpool:
      return "spool";
    case LossPlace::kWireRefusal:
      return "wire refusal";
    case LossPlace::kStore:
      return "store";
    case LossPlace::kRetention:
      return "retention";
  }
  return "unspecified";
}

std::string_view ToString(LossReason reason) {
  switch (reason) {
    case LossReason::kUnknown:
      return "unknown";
    case LossReason::kOverwritten:
      return "overwritten";
    case LossReason::kFull:
      return "full";
    case LossReason::kMalformed:
      return "malformed";
    case LossReason::kLimit:
      return "limit";
    case LossReason::kRefused:
      return "refused";
    case LossReason::kExpired:
      return "expired";
    case LossReason::kNoTime:
      return "no time";
  }
  return "unknown";
}

}  // namespace neurontrace
