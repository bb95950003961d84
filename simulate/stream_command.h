// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "lib/wire/channel_security.h"
#include "simulate/fleet_plan.h"

namespace neurontrace {

// The options of `neurontrace-simulate stream` after parsing.
struct StreamOptions {
  static constexpr double kSpeedMin = 0.1;
  static constexpr double kSpeedMax = 100;

  FleetPlan plan;  // its start is chosen when the run begins
  std::string out;
  std::string aggregator = "127.0.0.1:9400";
  ChannelSecurity security;
  double speed = 1;                // of the run's time to the machine's
  bool waits_for_capture = false;  // begins with somebody's capture instead of one of its own
  bool is_quiet = false;
};

// Maps the machine's time to a run's. A plain value; times are in ns.
struct ReplayPace {
  uint64_t begun_monotonic_ns = 0;
  uint64_t start_ns = 0;  // true time of the run at that moment
  double speed = 1;
  uint64_t TrueAt(uint64_t monotonic_ns) const {
    const double elapsed_ns = static_cast<double>(monotonic_ns - begun_monotonic_ns) * speed;
    return start_ns + static_cast<uint64_t>(elapsed_ns);
  }
};
// Returns when a run has to begin, by its true time, so that a fast one ends at the present and
// stamps nothing in the future. `now_ns` is realtime. Pure.
uint64_t ReplayStartNs(const FleetPlan& plan, double speed, uint64_t now_ns);

// Checks what can be checked before anything is started: the plan, the speed, the connection's
// security, and that the output directory has no earlier run. Fails with INVALID_ARGUMENT,
// FAILED_PRECONDITION or ALREADY_EXISTS.
absl::Status CheckStreamOptions(const StreamOptions& options);

// Plays the fleet through the components of agents to a running aggregator and prints the result.
// Requires options that CheckStreamOptions accepts, and that no other thread exists. Returns the
// exit code: 0 all of it was acknowledged, 1 it failed, 3 it was interrupted or a part was not
// acknowledged.
int RunStream(const StreamOptions& options);

}  // namespace neurontrace
