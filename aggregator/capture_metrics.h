// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/registry.h>

#include "absl/status/status.h"
#include "trace/capture_record.h"

namespace neurontrace {

// What became of captures that were asked for, as Prometheus metrics. The registry owns them. Any
// thread.
class CaptureMetrics {
 public:
  explicit CaptureMetrics(prometheus::Registry& registry);

  // Once for each capture, when it ends.
  void CountEnded(CaptureState state);
  // A command that did not start one, by the kind of its error; OK counts as nothing.
  void CountAnswer(const absl::Status& status);

 private:
  prometheus::Family<prometheus::Counter>& ended_;
  prometheus::Family<prometheus::Counter>& refused_;
};

}  // namespace neurontrace
