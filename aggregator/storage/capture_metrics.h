// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstdint>

#include "absl/status/status.h"
#include "aggregator/session/capture_observer.h"
#include "lib/trace/capture_record.h"

namespace neurontrace {

// Counts how captures begin and end, and how commands to start one are answered, as Prometheus
// metrics (docs/operator/metrics.md). The registry owns the metrics and must outlive this. Any
// thread.
class CaptureMetrics final : public CaptureObserver {
 public:
  // Creates every label value, so that the first increase is visible.
  explicit CaptureMetrics(prometheus::Registry& registry);

  // Counts a capture by its final state. Called once for each, when its end is first stored.
  // Requires a state in which the capture has ended.
  void CountEnded(CaptureState state);
  // Counts the answer to a command that did not start a capture, by the kind of its error. OK is
  // not counted.
  void CountAnswer(const absl::Status& status);
  // CaptureObserver: on the coordinator's sequence.
  void OnCaptureArmed(const ArmingOutcome& outcome) override;
  // Counts workers, not captures.
  void OnWorkersRefused(CaptureObstacle obstacle, uint32_t workers) override;

 private:
  // Captures by the result of arming.
  prometheus::Counter& begun_;
  prometheus::Counter& not_begun_;
  // Durations in seconds; only of captures that have begun.
  prometheus::Histogram& arm_seconds_;
  prometheus::Histogram& begin_lead_seconds_;
  // By obstacle, by outcome and by the kind of error; see docs/operator/metrics.md.
  prometheus::Family<prometheus::Counter>& workers_refused_;
  prometheus::Family<prometheus::Counter>& ended_;
  prometheus::Family<prometheus::Counter>& refused_;
};

}  // namespace neurontrace
