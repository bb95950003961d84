// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "aggregator/align/core/pair_clock.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// A path of packets between a host and the reference for as long as its least delay stays the same.
struct ProbeRoute {
  ProbePath path = ProbePath::kUnspecified;
  double round_trip_ns = 0;  // the least that was seen, less the time that the answer took
  double margin_ns = 0;      // how far a direction's least delay may be below what it seems
  // By how much the way to the reference takes longer than the way back, halved: what nobody can
  // see of the first route, and continuity shows of the next.
  double shift_ns = 0;
  bool shift_is_known = false;

  double floor_forward_ns() const {
    return std::max(0.0, round_trip_ns / 2 + shift_ns - margin_ns);
  }
  double floor_backward_ns() const {
    return std::max(0.0, round_trip_ns / 2 - shift_ns - margin_ns);
  }
};

// A ClockExchange on its way through the fit.
struct HostExchange {
  static constexpr uint32_t kNoRoute = UINT32_MAX;

  uint64_t send_ns = 0;     // x
  uint64_t receive_ns = 0;  // x
  uint64_t y_max_ns = 0;    // at send_ns
  uint64_t y_min_ns = 0;    // at receive_ns
  double round_trip_ns = 0;
  uint32_t epoch = 0;
  ProbePath path = ProbePath::kUnspecified;
  uint32_t route = kNoRoute;  // none: it was under way while the route changed
  bool is_rejected = false;
};

// One of its two inequalities, at its own instant.
struct HostSide {
  uint64_t x_ns = 0;
  uint32_t exchange = 0;
  bool is_most = false;
};

// False: its stamps cannot be of clocks that run forwards.
bool ReadExchange(const ClockExchange& exchange, HostExchange& out);

// The side as a constraint: what must be, and what is likely if its route has a known shift.
ClockConstraint ConstraintOf(const HostSide& side, const std::vector<HostExchange>& exchanges,
                             const std::vector<ProbeRoute>& routes);

}  // namespace neurontrace
