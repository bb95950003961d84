// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "lib/trace/ids.h"
#include "lib/trace/loss.h"

// How a trace states that it has no events of a worker for some time because its standing capture
// was suspended for another capture, which has those events. docs/formats/chunk.md defines the
// texts. Pure functions.
namespace neurontrace {

// Returns "capture 01K… had the worker", or "another capture had the worker" if its id is unknown.
inline std::string DescribeSuspension(const CaptureId& other) {
  return (other.empty() ? "another capture" : "capture " + other.ToString()) + " had the worker";
}

// Returns the entry of a stream's account for a suspension: a loss of no events, with a text.
// Nothing is lost, as the other capture has the events. No other loss has this place and reason.
inline Loss GaveWayFromTo(uint64_t from_ns, uint64_t to_ns, std::string words) {
  return {.place = LossPlace::kRuntimeRing,
          .reason = LossReason::kRefused,
          .first_timestamp_ns = from_ns,
          .last_timestamp_ns = to_ns,
          .detail = std::move(words)};
}
// Returns whether a loss is such an entry.
inline bool IsGivenWay(const Loss& loss) {
  return loss.place == LossPlace::kRuntimeRing && loss.reason == LossReason::kRefused &&
         loss.events == 0 && !loss.events_unknown;
}

// Returns whether two entries are parts of one suspension. A capture has a worker only once,
// without interruption, so the reports of an agent before and after its restart belong together.
inline bool IsSameGivenWay(const Loss& a, const Loss& b) {
  if (!IsGivenWay(a) || !IsGivenWay(b) || a.detail != b.detail) return false;
  return a.detail.starts_with("capture ") || (a.first_timestamp_ns <= b.last_timestamp_ns &&
                                              b.first_timestamp_ns <= a.last_timestamp_ns);
}

}  // namespace neurontrace
