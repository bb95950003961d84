// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "aggregator/align/host/host_exchange.h"

namespace neurontrace {

struct ProbeRouteParameters {
  // The least round trips of so long stretches are compared, of more if there are few probes.
  double bin_s = 4;
  uint32_t bin_probes = 32;
  // Three in a row that agree so well with each other and differ so much from what was are another
  // route. More where they scatter more.
  double agree_ns = 4'000;
  double differ_ns = 6'000;
  // A longer way for less than this is congestion, and changes nothing: delays only ever add.
  double longer_s = 30;
  // How far the least delay of one direction may be below half of the least round trip; more where
  // few round trips are nearly as short as the shortest, and all of that half in a gRPC call.
  double margin_ns = 2'000;
};

struct RouteChange {
  uint64_t x_begin_ns = 0;  // between these
  uint64_t x_end_ns = 0;
  uint32_t route = 0;  // that begins
  double round_trip_change_ns = 0;
};

struct ProbeRoutes {
  std::vector<ProbeRoute> routes;
  std::vector<RouteChange> changes;
};

// Which route each exchange took, by round trips alone: they do not depend on either clock's
// offset. Exchanges around a change have none. They are in ascending order of receipt.
ProbeRoutes FindRoutes(std::vector<HostExchange>& exchanges,
                       const ProbeRouteParameters& parameters);

}  // namespace neurontrace
