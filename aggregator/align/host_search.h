// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "aggregator/align/host_cut.h"
#include "aggregator/align/host_exchange.h"
#include "aggregator/align/step_search.h"

namespace neurontrace {

struct HostSearch {
  std::vector<HostCut> steps;           // of which nobody told
  std::vector<HostExchange> exchanges;  // as they were, and which are rejected
  std::vector<ProbeRoute> routes;       // as they were, and their shifts
  double wander_scale = 1;              // how many times the limits the clock wanders
};

// Searches every stretch for steps. A clock that seems to step or to contradict itself more than
// once an hour may as well wander more than it should: then so much more is conceded to it as takes
// most of that away, if that is no more than twenty times the limits.
HostSearch SearchHost(std::span<const std::span<const HostSide>> stretches,
                      const std::vector<HostExchange>& exchanges,
                      const std::vector<ProbeRoute>& routes,
                      const StepSearchParameters& parameters);

}  // namespace neurontrace
