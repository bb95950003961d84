// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "aggregator/align/core/pair_clock.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// A path of packets between a host and the reference, for as long as its least delay stays the
// same.
struct ProbeRoute {
  ProbePath path = ProbePath::kUnspecified;
  double round_trip_ns = 0;  // least round trip seen, without the time of the answer
  double margin_ns = 0;      // how far a direction's least delay may be below its estimate
  // Half of what the way to the reference takes longer than the way back. Invisible on the first
  // route; on later ones it shows because the clock continues.
  double shift_ns = 0;
  bool shift_is_known = false;

  // Return the least delay of either direction, by assumption. ConstraintOf narrows the likely
  // sides by it.
  double floor_forward_ns() const {
    return std::max(0.0, round_trip_ns / 2 + shift_ns - margin_ns);
  }
  double floor_backward_ns() const {
    return std::max(0.0, round_trip_ns / 2 - shift_ns - margin_ns);
  }
};

// A ClockExchange while it is fitted: two inequalities. The host sends at send_ns and receives the
// answer at receive_ns. As no packet arrives before it is sent, each stamp of the reference limits
// y from one side, however long the packets took. A plain value.
struct HostExchange {
  static constexpr uint32_t kNoRoute = UINT32_MAX;

  uint64_t send_ns = 0;     // x
  uint64_t receive_ns = 0;  // x
  uint64_t y_max_ns = 0;    // at send_ns: the reference received it later
  uint64_t y_min_ns = 0;    // at receive_ns: the reference sent it earlier
  // The time of both packets on the way, without the time that the reference took to answer.
  double round_trip_ns = 0;
  uint32_t epoch = 0;
  ProbePath path = ProbePath::kUnspecified;
  // Without a route only the possible sides are used.
  uint32_t route = kNoRoute;  // kNoRoute: was under way while the route changed
  // Set by FindSteps: a contradiction that no step explains. Then neither side is used.
  bool is_rejected = false;
};

// One of the two inequalities of an exchange, at its own instant.
struct HostSide {
  uint64_t x_ns = 0;
  uint32_t exchange = 0;
  bool is_most = false;  // an upper limit of y, else a lower one
};

// Fills the stamps, the round trip, the epoch and the path of `out`. Returns false and leaves it
// unchanged if the stamps cannot be of clocks that run forwards, for times beyond
// kEvidenceTimeMaxNs, and for a reference that took longer to answer than the host waited. Keeps no
// state; any thread.
bool ReadExchange(const ClockExchange& exchange, HostExchange& out);

// Returns the side as a constraint: what is certain, and what is likely if its route's shift is
// known. The constraint's source is the index of the exchange. Pure.
ClockConstraint ConstraintOf(const HostSide& side, const std::vector<HostExchange>& exchanges,
                             const std::vector<ProbeRoute>& routes);

}  // namespace neurontrace
