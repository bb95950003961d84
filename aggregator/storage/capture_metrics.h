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

// Counts how captures that were asked for begin and end, as Prometheus metrics. The registry owns
// them. Any thread.
class CaptureMetrics final : public CaptureObserver {
 public:
  explicit CaptureMetrics(prometheus::Registry& registry);

  // Called once for each capture, when it ends.
  void CountEnded(CaptureState state);
  // Counts a command that did not start a capture, by the kind of its error; OK is not counted.
  void CountAnswer(const absl::Status& status);
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
