// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/host/host_exchange.h"

#include <cmath>

#include "aggregator/align/core/wide.h"

namespace neurontrace {

// Evidence comes from other machines, so nothing about it is taken for granted.
bool ReadExchange(const ClockExchange& exchange, HostExchange& out) {
  if (exchange.send_raw_ns > exchange.receive_raw_ns ||
      exchange.reference_receive_ns > exchange.reference_send_ns ||
      exchange.receive_raw_ns >= kEvidenceTimeMaxNs ||
      exchange.reference_send_ns >= kEvidenceTimeMaxNs || exchange.reference_receive_ns == 0) {
    return false;
  }
  const uint64_t away = exchange.receive_raw_ns - exchange.send_raw_ns;
  const uint64_t held = exchange.reference_send_ns - exchange.reference_receive_ns;
  // 200 ppm, and one ns for rounding: the two clocks run at different rates.
  if (held > away + away / 5'000 + 1) return false;
  out.send_ns = exchange.send_raw_ns;
  out.receive_ns = exchange.receive_raw_ns;
  out.y_max_ns = exchange.reference_receive_ns;
  out.y_min_ns = exchange.reference_send_ns;
  // The difference may be negative by the tolerance above, so it is taken as signed.
  out.round_trip_ns = static_cast<double>(static_cast<int64_t>(away - held));
  out.epoch = exchange.reference_epoch;
  out.path = exchange.path;
  return true;
}

// Each side of an exchange is a constraint at its own time: neither needs to know the other's
// delay.
ClockConstraint ConstraintOf(const HostSide& side, const std::vector<HostExchange>& exchanges,
                             const std::vector<ProbeRoute>& routes) {
  const HostExchange& exchange = exchanges[side.exchange];
  ClockConstraint constraint{.x_ns = side.x_ns, .source = side.exchange};
  const ProbeRoute* route =
      exchange.route == HostExchange::kNoRoute ? nullptr : &routes[exchange.route];
  if (route != nullptr && !route->shift_is_known) route = nullptr;
  // An exchange faster than its route ever was has a shorter way, in either direction. Its floors
  // are lowered by the whole difference, because either direction may have gained all of it.
  const double faster =
      route == nullptr ? 0 : std::max(0.0, route->round_trip_ns - exchange.round_trip_ns);
  const auto whole = [faster](double floor_ns) {
    return static_cast<uint64_t>(std::max(0.0, floor_ns - faster));
  };
  if (side.is_most) {
    constraint.y_max_ns = exchange.y_max_ns;
    if (route != nullptr) {
      constraint.likely_max_ns = exchange.y_max_ns - whole(route->floor_forward_ns());
    }
  } else {
    constraint.y_min_ns = exchange.y_min_ns;
    if (route != nullptr) {
      constraint.likely_min_ns = exchange.y_min_ns + whole(route->floor_backward_ns());
    }
  }
  return constraint;
}

}  // namespace neurontrace
