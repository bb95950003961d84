// SPDX-License-Identifier: Apache-2.0
#include "aggregator/capture_metrics.h"

#include <string>
#include <string_view>

#include "health/metric_builders.h"

namespace neurontrace {
namespace {

std::string_view OutcomeWord(CaptureState state) {
  if (state == CaptureState::kNotBegun) return "not_begun";
  return state == CaptureState::kComplete ? "complete" : "incomplete";
}

// As Coordinator::StartCapture and those before it mean their errors.
std::string_view RefusalWord(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return "invalid";
    case absl::StatusCode::kResourceExhausted:
      return "limit";
    case absl::StatusCode::kFailedPrecondition:
      return "precondition";
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return "not_permitted";
    default:
      return "failed";
  }
}

constexpr CaptureState kOutcomes[] = {CaptureState::kComplete, CaptureState::kIncomplete,
                                      CaptureState::kNotBegun};
constexpr absl::StatusCode kRefusals[] = {
    absl::StatusCode::kInvalidArgument, absl::StatusCode::kResourceExhausted,
    absl::StatusCode::kFailedPrecondition, absl::StatusCode::kPermissionDenied,
    absl::StatusCode::kUnavailable};

}  // namespace

CaptureMetrics::CaptureMetrics(prometheus::Registry& registry)
    : ended_(MakeCounterFamily(registry, "neurontrace_aggregator_captures_ended_total",
                               "Captures that ended, by how")),
      refused_(MakeCounterFamily(registry, "neurontrace_aggregator_captures_refused_total",
                                 "Commands to start a capture that were refused, by why")) {
  // All of them from the start, so that the first is seen as an increase.
  for (const CaptureState state : kOutcomes) {
    ended_.Add({{"outcome", std::string(OutcomeWord(state))}});
  }
  for (const absl::StatusCode code : kRefusals) {
    refused_.Add({{"reason", std::string(RefusalWord(code))}});
  }
}

void CaptureMetrics::CountEnded(CaptureState state) {
  ended_.Add({{"outcome", std::string(OutcomeWord(state))}}).Increment();
}

void CaptureMetrics::CountAnswer(const absl::Status& status) {
  if (status.ok()) return;
  refused_.Add({{"reason", std::string(RefusalWord(status.code()))}}).Increment();
}

}  // namespace neurontrace
