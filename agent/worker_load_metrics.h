// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/labels.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <map>

#include "agent/source/neuron/tap_worker.h"
#include "lib/health/metric_builders.h"

namespace neurontrace {

// Publishes what tracing costs each worker and what detail is omitted, as gauges labelled by pid. A
// worker whose value is not known has no gauge, as 0 would read as "free". On the agent's sequence.
class WorkerLoadMetrics {
 public:
  // The registry owns the metrics.
  WorkerLoadMetrics(prometheus::Registry& registry, const prometheus::Labels& labels);

  // Replaces all gauges by the given workers'. A worker that is not listed loses its gauges.
  void Publish(const std::map<uint32_t, TapWorker::Load>& loads);

 private:
  // By pid.
  GaugesByLabel<uint32_t> core_ppm_;
  GaugesByLabel<uint32_t> bytes_per_second_;
  GaugesByLabel<uint32_t> fidelity_;
};

}  // namespace neurontrace
