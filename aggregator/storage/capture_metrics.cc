// SPDX-License-Identifier: Apache-2.0
#include "aggregator/storage/capture_metrics.h"

#include <string>
#include <string_view>

#include "lib/health/metric_builders.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {
namespace {

// Makes a histogram of durations between 5 ms and 10 s.
prometheus::Histogram& Seconds(prometheus::Registry& registry, const char* name, const char* help) {
  return MakeHistogram(registry, name, help, {0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10});
}

// Returns the label of an ended state. Any other state counts as incomplete.
std::string_view OutcomeLabel(CaptureState state) {
  if (state == CaptureState::kNotBegun) return "not_begun";
  return state == CaptureState::kComplete ? "complete" : "incomplete";
}

// Follows the meanings that Coordinator::StartCapture and the checks before it give their errors.
std::string_view RefusalLabel(absl::StatusCode code) {
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

// The label values that are exported from the start.
constexpr CaptureState kOutcomes[] = {CaptureState::kComplete, CaptureState::kIncomplete,
                                      CaptureState::kNotBegun};
constexpr absl::StatusCode kRefusals[] = {
    absl::StatusCode::kInvalidArgument, absl::StatusCode::kResourceExhausted,
    absl::StatusCode::kFailedPrecondition, absl::StatusCode::kPermissionDenied,
    absl::StatusCode::kUnavailable};

}  // namespace

CaptureMetrics::CaptureMetrics(prometheus::Registry& registry)
    : begun_(MakeCounter(registry, "neurontrace_aggregator_captures_begun_total",
                         "Captures that started recording")),
      not_begun_(MakeCounter(registry, "neurontrace_aggregator_captures_not_begun_total",
                             "Captures that did not start because too few workers could join")),
      arm_seconds_(Seconds(registry, "neurontrace_aggregator_arm_seconds",
                           "Time from the command to the decision whether a capture starts")),
      begin_lead_seconds_(Seconds(registry, "neurontrace_aggregator_begin_lead_seconds",
                                  "Time from the decision that a capture starts to its start")),
      workers_refused_(MakeCounterFamily(registry, "neurontrace_aggregator_workers_refused_total",
                                         "Selected workers that could not take part, by reason")),
      ended_(MakeCounterFamily(registry, "neurontrace_aggregator_captures_ended_total",
                               "Captures that ended, by result")),
      refused_(MakeCounterFamily(registry, "neurontrace_aggregator_captures_refused_total",
                                 "Commands to start a capture that were refused, by reason")) {
  // Every label value exists from the start: a counter that appears with value 1 shows no increase.
  for (const CaptureState state : kOutcomes) {
    ended_.Add({{"outcome", std::string(OutcomeLabel(state))}});
  }
  for (const absl::StatusCode code : kRefusals) {
    refused_.Add({{"reason", std::string(RefusalLabel(code))}});
  }
}

void CaptureMetrics::CountEnded(CaptureState state) {
  ended_.Add({{"outcome", std::string(OutcomeLabel(state))}}).Increment();
}

void CaptureMetrics::CountAnswer(const absl::Status& status) {
  if (status.ok()) return;
  refused_.Add({{"reason", std::string(RefusalLabel(status.code()))}}).Increment();
}

// A capture that did not begin has no meaningful duration, so the histograms count begun ones only.
void CaptureMetrics::OnCaptureArmed(const ArmingOutcome& outcome) {
  (outcome.begun ? begun_ : not_begun_).Increment();
  if (!outcome.begun) return;
  arm_seconds_.Observe(static_cast<double>(outcome.arm_ns) * 1e-9);
  begin_lead_seconds_.Observe(static_cast<double>(outcome.lead_ns) * 1e-9);
}

void CaptureMetrics::OnWorkersRefused(CaptureObstacle obstacle, uint32_t workers) {
  workers_refused_.Add({{"obstacle", std::string(ToString(obstacle))}})
      .Increment(static_cast<double>(workers));
}

}  // namespace neurontrace
