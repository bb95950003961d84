// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tests/clock_sim/dice.h"
#include "tests/clock_sim/true_clock.h"

namespace neurontrace {

enum class Way : uint8_t { kForward = 0, kBackward = 1 };  // host to aggregator, and back

// The way between a host and the aggregator: least delays that may differ, and what is added to
// them. Delays are never less than the least of their time. Plain data.
struct NetworkPath {
  struct Congestion {
    Way way = Way::kForward;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
    int64_t delay_ns = 0;  // queues are full: each packet waits so long, and a little
  };
  struct RouteChange {
    int64_t at_ns = 0;
    int64_t forward_ns = 0;  // added to the least delay from then on
    int64_t backward_ns = 0;
  };

  int64_t forward_ns = 30 * kMicrosecond;  // least delay
  int64_t backward_ns = 30 * kMicrosecond;
  double jitter_ns = 6'000;  // mean of the exponential part
  double tail_chance = 0.1;  // of a Pareto part besides, cut at 20 ms
  double tail_least_ns = 15'000;
  double tail_alpha = 1.3;
  double blocking_chance = 0;  // that a bulk frame is ahead in the queue: up to 1 ms
  double loss_chance = 0.001;
  std::vector<Congestion> congestions;
  std::vector<RouteChange> route_changes;

  // Without any jitter.
  int64_t LeastDelayNs(Way way, int64_t true_ns) const;
  int64_t DelayNs(Way way, int64_t true_ns, Dice& dice) const;
};

}  // namespace neurontrace
