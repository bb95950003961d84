// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/host_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace neurontrace {
namespace {

HostSearch SearchOnce(std::span<const std::span<const HostSide>> stretches,
                      const std::vector<HostExchange>& exchanges,
                      const std::vector<ProbeRoute>& routes, StepSearchParameters parameters,
                      double wander_scale) {
  parameters.pair.wander.wander_ns_per_s2 *= wander_scale;
  parameters.pair.wander.rate_change_ns_per_s *= wander_scale;
  HostSearch search{{}, exchanges, routes, wander_scale};
  for (const std::span<const HostSide> stretch : stretches) {
    for (const ClockStep& step : FindSteps(stretch, parameters, search.exchanges, search.routes)) {
      const HostSide& first = stretch[step.first_after];
      // What is longer than a whole round trip cannot be explained by delays.
      const bool is_plain = std::abs(step.amount_ns) > exchanges[first.exchange].round_trip_ns;
      search.steps.push_back(
          {stretch[step.last_before].x_ns, first.x_ns,
           is_plain ? SegmentCause::kContradiction : SegmentCause::kDetected,
           std::llround(step.amount_ns),
           fmt::format("the probes show a step of {:+.1f} us, of which nobody told",
                       step.amount_ns / 1e3)});
    }
  }
  return search;
}

size_t TroublesOf(const HostSearch& search) {
  const auto rejected = std::count_if(search.exchanges.begin(), search.exchanges.end(),
                                      [](const HostExchange& e) { return e.is_rejected; });
  return search.steps.size() + static_cast<size_t>(rejected);
}

}  // namespace

HostSearch SearchHost(std::span<const std::span<const HostSide>> stretches,
                      const std::vector<HostExchange>& exchanges,
                      const std::vector<ProbeRoute>& routes,
                      const StepSearchParameters& parameters) {
  HostSearch search = SearchOnce(stretches, exchanges, routes, parameters, 1);
  constexpr uint64_t kHourNs = 3'600'000'000'000;
  const uint64_t hours =
      exchanges.empty() ? 0 : (exchanges.back().receive_ns - exchanges.front().send_ns) / kHourNs;
  const size_t tolerable = 1 + hours;
  if (TroublesOf(search) <= tolerable) return search;
  constexpr double kScales[] = {2, 4, 8, 20};
  HostSearch loosest = SearchOnce(stretches, exchanges, routes, parameters, *std::rbegin(kScales));
  // Steps that are there whatever is conceded are steps.
  const size_t least = TroublesOf(loosest) + tolerable;
  if (TroublesOf(search) <= least) return search;
  for (const double scale : kScales) {
    search = SearchOnce(stretches, exchanges, routes, parameters, scale);
    if (TroublesOf(search) <= least) return search;
  }
  return loosest;
}

}  // namespace neurontrace
