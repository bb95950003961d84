// SPDX-License-Identifier: Apache-2.0
#include "aggregator/reference/probe_metrics.h"

#include <string>

#include "health/metric_builders.h"

namespace neurontrace {
namespace {

prometheus::Counter& MakeRefused(prometheus::Registry& registry, const std::string& reason) {
  return MakeCounter(registry, "neurontrace_aggregator_probes_refused_total",
                     "Probe packets dropped without an answer", {{"reason", reason}});
}

}  // namespace

ProbeMetrics::ProbeMetrics(prometheus::Registry& registry)
    : answered(MakeCounter(registry, "neurontrace_aggregator_probes_answered_total",
                           "Clock probes answered over UDP")),
      without_kernel_stamp(MakeCounter(registry,
                                       "neurontrace_aggregator_probes_without_kernel_stamp_total",
                                       "Of these, those whose receipt the kernel did not stamp")),
      refused_malformed(MakeRefused(registry, "malformed")),
      refused_unknown_key(MakeRefused(registry, "unknown_key")),
      refused_forged(MakeRefused(registry, "forged")),
      refused_replayed(MakeRefused(registry, "replayed")),
      refused_too_many(MakeRefused(registry, "too_many")),
      send_errors(MakeCounter(registry, "neurontrace_aggregator_probe_send_errors_total",
                              "Answers that could not be sent")) {}

}  // namespace neurontrace
