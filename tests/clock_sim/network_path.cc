// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/network_path.h"

namespace neurontrace {

int64_t NetworkPath::LeastDelayNs(Way way, int64_t true_ns) const {
  int64_t delay_ns = way == Way::kForward ? forward_ns : backward_ns;
  for (const RouteChange& change : route_changes) {
    if (true_ns < change.at_ns) break;
    delay_ns += way == Way::kForward ? change.forward_ns : change.backward_ns;
  }
  return delay_ns;
}

int64_t NetworkPath::DelayNs(Way way, int64_t true_ns, Dice& dice) const {
  constexpr double kDelayMost = 20e6;
  double added_ns = dice.Exponential(jitter_ns);
  if (dice.Chance(tail_chance)) added_ns += dice.Pareto(tail_least_ns, tail_alpha, kDelayMost);
  if (blocking_chance > 0 && dice.Chance(blocking_chance)) added_ns += dice.Between(0, 1e6);
  for (const Congestion& congestion : congestions) {
    if (congestion.way != way || true_ns < congestion.begin_ns || true_ns >= congestion.end_ns) {
      continue;
    }
    added_ns += static_cast<double>(congestion.delay_ns) * dice.Between(0.9, 1.3);
  }
  return LeastDelayNs(way, true_ns) + static_cast<int64_t>(added_ns);
}

}  // namespace neurontrace
