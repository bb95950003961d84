// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/labels.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <map>

#include "agent/source/neuron/tap_worker.h"
#include "health/metric_builders.h"

namespace neurontrace {

// What each worker costs and what is left out of it, as Prometheus gauges by pid; one that is not
// known is not there. On the agent's sequence.
class WorkerLoadMetrics {
 public:
  // The registry owns the metrics.
  WorkerLoadMetrics(prometheus::Registry& registry, const prometheus::Labels& labels);

  void Publish(const std::map<uint32_t, TapWorker::Load>& loads);

 private:
  GaugesByLabel<uint32_t> core_ppm_;
  GaugesByLabel<uint32_t> bytes_per_second_;
  GaugesByLabel<uint32_t> fidelity_;
};

}  // namespace neurontrace
