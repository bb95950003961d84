// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/call_limits.h"

#include "lib/health/metric_builders.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {

// Operators and agents have separate limits, so that neither can use up the other's.
CallLimits::CallLimits(const Clock& clock, prometheus::Registry& registry,
                       uint32_t calls_per_second)
    : forgotten_(MakeCounter(
          registry, "neurontrace_aggregator_callers_forgotten_total",
          "Callers whose call counts were dropped because too many others called after them")),
      refused_(RefusedCalls(registry, "too_many")),
      callers_(clock, {calls_per_second, calls_per_second * limits::kCallSecondsAtOnce},
               "--calls-per-second of the aggregator", forgotten_),
      agents_(clock, {limits::kAgentCallsPerSecondMax, limits::kAgentCallsAtOnceMax},
              "of the agents of one address", forgotten_) {}

absl::Status CallLimits::AdmitAgent(const std::string& peer) {
  // Without the port, because one agent makes several connections.
  absl::Status admitted = agents_.Take(peer.substr(0, peer.rfind(':')));
  if (!admitted.ok()) refused_.Increment();
  return admitted;
}

}  // namespace neurontrace
