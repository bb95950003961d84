// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "lib/trace/ids.h"
#include "lib/trace/loss.h"

// How a trace says that it has nothing of a worker for some time because its standing capture had
// given way to another one, which has those events. docs/formats/chunk.md has the words.
namespace neurontrace {

// "capture 01K… had the worker"; of one that is not known, "another capture had the worker".
inline std::string DescribeSuspension(const CaptureId& other) {
  return (other.empty() ? "another capture" : "capture " + other.ToString()) + " had the worker";
}

// The stretch of time goes into a stream's account as a loss of no events, with words, that nothing
// else has the place and reason of: another capture has what was then, so nothing of it is lost.
inline Loss GaveWayFromTo(uint64_t from_ns, uint64_t to_ns, std::string words) {
  return {.place = LossPlace::kRuntimeRing,
          .reason = LossReason::kRefused,
          .first_timestamp_ns = from_ns,
          .last_timestamp_ns = to_ns,
          .detail = std::move(words)};
}
inline bool IsGivenWay(const Loss& loss) {
  return loss.place == LossPlace::kRuntimeRing && loss.reason == LossReason::kRefused &&
         loss.events == 0 && !loss.events_unknown;
}

// Two of them that are one stretch: a capture has a worker once, from first to last, so what an
// agent said before it was restarted and what the next one says belong together.
inline bool IsSameGivenWay(const Loss& a, const Loss& b) {
  if (!IsGivenWay(a) || !IsGivenWay(b) || a.detail != b.detail) return false;
  return a.detail.starts_with("capture ") || (a.first_timestamp_ns <= b.last_timestamp_ns &&
                                              b.first_timestamp_ns <= a.last_timestamp_ns);
}

}  // namespace neurontrace
