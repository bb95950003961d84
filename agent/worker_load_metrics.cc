// SPDX-License-Identifier: Apache-2.0
#include "agent/worker_load_metrics.h"

namespace neurontrace {

WorkerLoadMetrics::WorkerLoadMetrics(prometheus::Registry& registry,
                                     const prometheus::Labels& labels)
    : core_ppm_{MakeGaugeFamily(registry, "neurontrace_agent_worker_core_ppm",
                                "Processor time of tracing a worker, in its tap and the agent, in "
                                "millionths of one processor",
                                labels),
                "pid",
                {}},
      bytes_per_second_{MakeGaugeFamily(registry, "neurontrace_agent_worker_bytes_per_second",
                                        "Bytes per second of a worker's chunks", labels),
                        "pid",
                        {}},
      fidelity_{MakeGaugeFamily(registry, "neurontrace_agent_worker_fidelity_level",
                                "Level of detail omitted from a worker's capture to stay within "
                                "its budget: 0 none, 5 most",
                                labels),
                "pid",
                {}} {}

void WorkerLoadMetrics::Publish(const std::map<uint32_t, TapWorker::Load>& loads) {
  std::map<uint32_t, double> core_ppm;
  std::map<uint32_t, double> bytes_per_second;
  std::map<uint32_t, double> fidelity;
  for (const auto& [pid, load] : loads) {
    if (load.cost) core_ppm[pid] = load.cost->core_ppm;
    if (load.cost) bytes_per_second[pid] = load.cost->bytes_per_second;
    if (load.fidelity) fidelity[pid] = *load.fidelity;
  }
  // Set replaces all labels, so a worker that has ended disappears with the next call.
  core_ppm_.Set(core_ppm);
  bytes_per_second_.Set(bytes_per_second);
  fidelity_.Set(fidelity);
}

}  // namespace neurontrace
