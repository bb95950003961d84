// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/labels.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <map>

#include "agent/source/neuron/tap_worker.h"

namespace neurontrace {

// What each worker costs and what is left out of it, as Prometheus gauges by pid; one that is not
// known is not there. On the agent's sequence.
class WorkerLoadMetrics {
 public:
  // The registry owns the metrics.
  WorkerLoadMetrics(prometheus::Registry& registry, const prometheus::Labels& labels);

  void Publish(const std::map<uint32_t, TapWorker::Load>& loads);

 private:
  struct ByPid {
    prometheus::Family<prometheus::Gauge>& family;
    std::map<uint32_t, prometheus::Gauge*> gauges;

    void Set(const std::map<uint32_t, double>& values);
  };

  ByPid core_ppm_;
  ByPid bytes_per_second_;
  ByPid fidelity_;
};

}  // namespace neurontrace
