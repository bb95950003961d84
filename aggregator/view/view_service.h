// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/registry.h>

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "aggregator/clocks/clock_service.h"
#include "aggregator/operator/capture_viewer.h"
#include "aggregator/operator/streaming_call_limiter.h"
#include "aggregator/store/store.h"
#include "aggregator/view/capture_views.h"
#include "lib/base/clock.h"

namespace neurontrace {

// Everything of an aggregator that answers the page: the layouts it keeps, the limit of questions
// at once, and their metrics. Any thread. Owned by the aggregator.
class ViewService final : public CaptureViewer, private ViewClocks {
 public:
  // All of them must outlive the service. `callers_have_names` is false without TLS: then all
  // callers count as one, which may use all places.
  struct Deps {
    const Store& store;
    ClockService& clocks;
    prometheus::Registry& registry;
    const Clock& clock;
    bool callers_have_names = true;
  };
  explicit ViewService(const Deps& deps);

  // Limits how many questions are answered at once, and whose client stops reading.
  StreamingCallLimiter& calls() { return calls_; }

  absl::StatusOr<std::string> View(const CaptureRecord& record, std::string_view what,
                                   std::string_view query,
                                   const std::function<bool()>& cancelled) override;

 private:
  absl::StatusOr<CaptureClocks> ClocksOf(const CaptureRecord& record) override {
    return clocks_.ForCapture(record);
  }

  ClockService& clocks_;
  StreamingCallLimiter calls_;
  CaptureViews views_;
};

}  // namespace neurontrace
