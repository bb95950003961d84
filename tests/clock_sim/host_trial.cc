// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/host_trial.h"

#include <algorithm>

namespace neurontrace {
namespace {

enum DicePart : uint64_t { kInstantDice = 201, kPairDice = 202 };

std::vector<int64_t> DrawInstants(const HostScenario& scenario, uint64_t seed) {
  Dice dice(seed, kInstantDice);
  std::vector<int64_t> instants(scenario.instants);
  for (int64_t& instant : instants) {
    instant = static_cast<int64_t>(dice.Unit() * static_cast<double>(scenario.duration_ns));
  }
  std::sort(instants.begin(), instants.end());
  return instants;
}

std::vector<Stamp> TakeStamps(const Host& host, std::span<const int64_t> instants) {
  std::vector<Stamp> stamps;
  stamps.reserve(instants.size());
  for (const int64_t instant : instants) {
    const uint64_t raw_ns = host.truth.raw.Read(instant);
    stamps.push_back({.raw_ns = raw_ns, .realtime_ns = host.truth.steered.Realtime(raw_ns)});
  }
  return stamps;
}

}  // namespace

std::vector<HostScore> RunHostTrial(const HostScenario& scenario,
                                    std::span<const HostMethod> methods, uint64_t seed) {
  const ReferenceClock reference = MakeReference(scenario, seed);
  const std::vector<int64_t> instants = DrawInstants(scenario, seed);
  std::vector<HostScore> scores(methods.size());
  std::vector<std::vector<HostErrors>> errors(methods.size());
  for (uint32_t member = 0; member < scenario.hosts; ++member) {
    const HostPlan plan = PlanHost(scenario, seed, member);
    const Host host =
        PlayHost(plan, reference, scenario.duration_ns + scenario.after_ns, seed, member);
    const std::vector<Stamp> stamps = TakeStamps(host, instants);
    for (size_t i = 0; i < methods.size(); ++i) {
      const HostMapping mapping = methods[i].map(host.records, scenario.realtime_stamps, stamps);
      errors[i].push_back(
          ScoreHost(scenario, plan, host, reference, instants, stamps, mapping, scores[i]));
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
