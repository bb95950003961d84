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
  explicit CaptureMetrics(prometheus::Registry& registry);

  // Called once for each capture, when its end is first stored.
  void CountEnded(CaptureState state);
  // Counts the answer to a command that did not start a capture, by the kind of its error. OK is
  // not counted.
  void CountAnswer(const absl::Status& status);
  // CaptureObserver: on the coordinator's sequence.
  void OnCaptureArmed(const ArmingOutcome& outcome) override;
  void OnWorkersRefused(CaptureObstacle obstacle, uint32_t workers) override;

 private:
  prometheus::Counter& begun_;
  prometheus::Counter& not_begun_;
  prometheus::Histogram& arm_seconds_;
  prometheus::Histogram& begin_lead_seconds_;
  prometheus::Family<prometheus::Counter>& workers_refused_;
  prometheus::Family<prometheus::Counter>& ended_;
  prometheus::Family<prometheus::Counter>& refused_;
};

}  // namespace neurontrace
