// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "aggregator/access/call_rates.h"
#include "lib/base/clock.h"

namespace neurontrace {

// The limits of one aggregator: operators are counted by name, agents by address, as all agents may
// use one certificate. Any thread. Owned by AccessControl.
class CallLimits {
 public:
  // Everything passed by reference must outlive this.
  CallLimits(const Clock& clock, prometheus::Registry& registry, uint32_t calls_per_second);

  // Returns RESOURCE_EXHAUSTED for an operator that calls too often; AuthInterceptor counts it.
  absl::Status AdmitCaller(const std::string& name) { return callers_.Take(name); }
  // Admits an agent's call or refuses it, which is counted. `peer` is as gRPC names it; its port is
  // ignored.
  absl::Status AdmitAgent(const std::string& peer);

 private:
  prometheus::Counter& forgotten_;
  prometheus::Counter& refused_;
  CallRates callers_;
  CallRates agents_;
};

}  // namespace neurontrace
