// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tests/clock_sim/dice.h"
#include "tests/clock_sim/host_world.h"
#include "tests/clock_sim/reference_clock.h"

namespace neurontrace {

// What a fleet of hosts goes through, and what has to hold in it.
struct HostScenario {
  std::string_view name;
  std::string_view words;
  uint32_t hosts = 8;
  int64_t duration_ns = 240 * kSecond;
  // An agent continues probing for longer than a capture lasts, and a final fit knows that.
  int64_t after_ns = 10 * kSecond;
  uint32_t instants = 600;  // true times at which all hosts stamp, and are compared
  // Events are stamped with REALTIME, not with raw.
  bool realtime_stamps = false;
  // Its faults go untold: a few misses are forgiven, if they lie in windows that the model flags.
  bool blind = false;
  // Both directions have the same least delay, so that likely bounds have to hold, too.
  bool symmetric = true;
  // Its clocks do what a fit need not expect: bounds have to hold all the same, but they may be
  // wide and the model may break.
  bool beyond_assumptions = false;
  // Plans host `member`. What all hosts of a run share is drawn from `run`, the same for each.
  void (*plan)(Dice& dice, Dice run, uint32_t member, HostPlan& plan) = nullptr;
  std::vector<ReferenceClock::Restart> (*restarts)(Dice run) = nullptr;
};

std::span<const HostScenario> HostScenarios();
// nullptr: none has this name.
const HostScenario* FindHostScenario(std::string_view name);

// The plan of a host of the scenario in the run with this seed.
HostPlan PlanHost(const HostScenario& scenario, uint64_t seed, uint32_t member);
ReferenceClock MakeReference(const HostScenario& scenario, uint64_t seed);

}  // namespace neurontrace
