// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/host_trial.h"

#include <algorithm>
#include <cmath>

namespace neurontrace {
namespace {

enum DicePart : uint64_t { kInstantDice = 201, kPairDice = 202, kFaultDice = 203 };

std::vector<int64_t> DrawInstants(const HostScenario& scenario, uint64_t seed) {
  Dice dice(seed, kInstantDice);
  std::vector<int64_t> instants(scenario.instants);
  for (int64_t& instant : instants) {
    instant = static_cast<int64_t>(dice.Unit() * static_cast<double>(scenario.duration_ns));
  }
  std::sort(instants.begin(), instants.end());
  return instants;
}

// When something happens to the host's clocks.
std::vector<int64_t> FaultTimes(const HostPlan& plan, const Host& host) {
  std::vector<int64_t> times;
  for (const ClockJump& jump : plan.clock.jumps) {
    times.push_back(jump.at_ns);
    times.push_back(host.truth.raw.WhenRunning(jump.at_ns));
  }
  for (const TimeSpan& pause : plan.paused)
    times.insert(times.end(), {pause.begin_ns, pause.end_ns});
  for (const NetworkPath::RouteChange& change : plan.path.route_changes) {
    times.push_back(change.at_ns);
  }
  const std::vector<Steering>& steering = host.truth.steered.schedule();
  for (size_t i = 1; i < steering.size(); ++i) {
    times.push_back(host.truth.raw.TimeOf(steering[i].raw_ns));
  }
  return times;
}

// The shared instants, and some from a microsecond to a second before and after each fault.
std::vector<Instant> WithFaults(std::span<const int64_t> shared, const HostPlan& plan,
                                const Host& host, int64_t duration_ns, Dice dice) {
  constexpr int kEach = 10;
  std::vector<Instant> instants;
  for (const int64_t at : shared) instants.push_back({.true_ns = at});
  for (const int64_t fault : FaultTimes(plan, host)) {
    for (int i = 0; i < kEach; ++i) {
      const double away_ns = std::pow(10, dice.Between(3, 9));
      const int64_t at = fault + static_cast<int64_t>(dice.Chance(0.5) ? away_ns : -away_ns);
      if (at > 0 && at < duration_ns) instants.push_back({.true_ns = at, .is_shared = false});
    }
  }
  std::stable_sort(instants.begin(), instants.end(),
                   [](const Instant& a, const Instant& b) { return a.true_ns < b.true_ns; });
  return instants;
}

std::vector<Stamp> TakeStamps(const Host& host, std::span<const Instant> instants) {
  std::vector<Stamp> stamps;
  stamps.reserve(instants.size());
  for (const Instant& instant : instants) {
    const uint64_t raw_ns = host.truth.raw.Read(instant.true_ns);
    stamps.push_back({.raw_ns = raw_ns, .realtime_ns = host.truth.steered.Realtime(raw_ns)});
  }
  return stamps;
}

}  // namespace

std::vector<HostScore> RunHostTrial(const HostScenario& scenario,
                                    std::span<const HostMethod> methods, uint64_t seed) {
  const ReferenceClock reference = MakeReference(scenario, seed);
  const std::vector<int64_t> shared = DrawInstants(scenario, seed);
  std::vector<HostScore> scores(methods.size());
  std::vector<std::vector<HostErrors>> errors(methods.size());
  for (uint32_t member = 0; member < scenario.hosts; ++member) {
    const HostPlan plan = PlanHost(scenario, seed, member);
    const Host host =
        PlayHost(plan, reference, scenario.duration_ns + scenario.after_ns, seed, member);
    const std::vector<Instant> instants =
        WithFaults(shared, plan, host, scenario.duration_ns, Dice(seed, kFaultDice, member));
    const std::vector<Stamp> stamps = TakeStamps(host, instants);
    const MappedHost mapped_host{.scenario = scenario,
                                 .plan = plan,
                                 .host = host,
                                 .reference = reference,
                                 .instants = instants,
                                 .stamps = stamps};
    for (size_t i = 0; i < methods.size(); ++i) {
      const HostMapping mapping = methods[i].map(host.records, scenario.realtime_stamps, stamps);
      errors[i].push_back(ScoreHost(mapped_host, mapping, scores[i]));
      if (member > 0 || mapping.model.segments.empty()) continue;
      const HostMapping again = methods[i].map(host.records, scenario.realtime_stamps, stamps);
      scores[i].refits.Add(again.model == mapping.model);
    }
  }
  for (size_t i = 0; i < methods.size(); ++i) {
    ScorePairs(errors[i], Dice(seed, kPairDice), scores[i]);
  }
  return scores;
}

}  // namespace neurontrace
