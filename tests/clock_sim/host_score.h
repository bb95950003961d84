// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/clock_sim/host_method.h"
#include "tests/clock_sim/host_scenario.h"
#include "tests/clock_sim/host_score.h"
#include "tests/clock_sim/log_histogram.h"

namespace neurontrace {

struct Share {
  uint64_t of = 0;
  uint64_t held = 0;

  void Add(bool holds) {
    ++of;
    held += holds ? 1 : 0;
  }
  void Merge(const Share& other) {
    of += other.of;
    held += other.held;
  }
  double Percent() const {
    return of == 0 ? 100.0 : 100.0 * static_cast<double>(held) / static_cast<double>(of);
  }
};

// How well a method did, over hosts, instants and runs. Errors are in nanoseconds of reference
// time.
struct HostScore {
  LogHistogram own;     // of one host against the truth
  LogHistogram pair;    // of two hosts against each other
  LogHistogram spread;  // the greatest of all pairs at an instant
  LogHistogram beyond;  // how far an error exceeds half of the path's asymmetry, which none can see
  LogHistogram bound;
  LogHistogram likely_bound;
  Share covered;  // by the bound
  Share likely_covered;
  Share pairs_covered;
  Share pairs_likely_covered;
  Share misses_flagged;
  // At times close to a fault of the host, drawn besides: none of the figures above has them.
  LogHistogram near_error;
  Share near_covered;
  Share near_misses_flagged;
  Share steps_located;         // of the counter, within half a second
  LogHistogram step_distance;  // of those: to the farther end of where the model breaks
  uint64_t false_breaks = 0;
  uint64_t gave_up = 0;  // hosts
  uint64_t hosts = 0;
  uint64_t exchanges = 0;
  uint64_t knots = 0;
  uint64_t fit_ns = 0;
  Share refits;  // that gave the same model
  double host_seconds = 0;

  void Merge(const HostScore& other);
};

// The outcome of one host: its errors at the instants of a run.
struct HostErrors {
  static constexpr double kAbsent = 1e300;  // it could not stamp at that instant
  std::vector<double> error_ns;
  std::vector<double> bound_ns;
  std::vector<double> likely_bound_ns;
};

// When a host stamps, in ascending order of time.
struct Instant {
  int64_t true_ns = 0;
  bool is_shared = true;  // by all hosts of a run; else it is close to a fault of this one
};

// What is known of a host when a method has mapped its stamps. All outlive it.
struct MappedHost {
  const HostScenario& scenario;
  const HostPlan& plan;
  const Host& host;
  const ReferenceClock& reference;
  std::span<const Instant> instants;
  std::span<const Stamp> stamps;  // one an instant
};

// Takes one host's answers into `score`; gives what the comparison of hosts needs, of the instants
// that they share.
HostErrors ScoreHost(const MappedHost& mapped_host, const HostMapping& mapping, HostScore& score);

// Compares the hosts of a run with each other: all pairs of up to 64 hosts, of more some drawn.
void ScorePairs(std::span<const HostErrors> hosts, Dice dice, HostScore& score);

// Plays one run of a scenario, and lets each method map its stamps. One score a method, in the
// order of `methods`. Equal arguments give equal scores but for the processor times.
std::vector<HostScore> RunHostTrial(const HostScenario& scenario,
                                    std::span<const HostMethod> methods, uint64_t seed);

}  // namespace neurontrace
