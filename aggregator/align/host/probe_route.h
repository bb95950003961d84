// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "aggregator/align/host/host_exchange.h"

namespace neurontrace {

// Parameters of FindRoutes.
struct ProbeRouteParameters {
  // Least round trips of bins are compared. A bin lasts at least this long and has at least so many
  // probes.
  double bin_s = 4;
  uint32_t bin_probes = 32;
  // Three consecutive bins that agree this well with each other and differ this much from the route
  // so far are another route. Both grow if bins scatter more.
  double agree_ns = 4'000;
  double differ_ns = 6'000;
  // A longer way that lasts less than this is congestion and no route: delays only ever add.
  double longer_s = 30;
  // How far the least delay of one direction may be below half of the least round trip. More if few
  // round trips are nearly as short as the shortest, and the whole half for gRPC calls.
  double margin_ns = 2'000;
};

// A change of the route, somewhere between two times of raw.
struct RouteChange {
  uint64_t x_begin_ns = 0;  // between these
  uint64_t x_end_ns = 0;
  uint32_t route = 0;  // the new one
  double round_trip_change_ns = 0;
};

// Changes are in order of time within each path.
struct ProbeRoutes {
  std::vector<ProbeRoute> routes;
  std::vector<RouteChange> changes;
};

// Finds which route each exchange took, by round trips alone, as they depend on neither clock's
// offset: the minimum round-trip filter of NTP (RFC 5905, section 10) applied to bins. Sets
// HostExchange::route; exchanges around a change keep none. Requires ascending order of receipt.
// Keeps no state; any thread.
ProbeRoutes FindRoutes(std::vector<HostExchange>& exchanges,
                       const ProbeRouteParameters& parameters);

}  // namespace neurontrace
