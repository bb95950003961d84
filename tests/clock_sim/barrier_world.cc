// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/barrier_world.h"

#include <algorithm>

namespace neurontrace {
namespace {

constexpr uint64_t kBarrierDice = 401;

// One way is longer than the other, by up to kMostNs.
template <int64_t kMostNs>
void UnequalWays(Dice& dice, Dice, uint32_t, HostPlan& plan) {
  const int64_t longer_ns = static_cast<int64_t>(dice.Unit() * static_cast<double>(kMostNs));
  (dice.Chance(0.5) ? plan.path.forward_ns : plan.path.backward_ns) += longer_ns;
}

constexpr HostScenario Hosts(void (*plan)(Dice&, Dice, uint32_t, HostPlan&)) {
  return {.name = "",
          .words = "",
          .hosts = 16,
          .duration_ns = 60 * kSecond,
          .instants = 300,
          .symmetric = false,
          .plan = plan};
}

constexpr BarrierScenario kScenarios[] = {
    {.name = "C1",
     .words = "asymmetry up to 20 us, 50 barriers/s",
     .hosts = Hosts(UnequalWays<20 * kMicrosecond>)},
    {.name = "C2",
     .words = "asymmetry up to 60 us, 50 barriers/s",
     .hosts = Hosts(UnequalWays<60 * kMicrosecond>)},
    {.name = "C3",
     .words = "asymmetry up to 60 us, 10 barriers/s",
     .hosts = Hosts(UnequalWays<60 * kMicrosecond>),
     .barriers_per_s = 10},
    {.name = "C4",
     .words = "C2 with a fifth of the members missing, and ten mislabelled barriers",
     .hosts = Hosts(UnequalWays<60 * kMicrosecond>),
     .missing_chance = 0.2,
     .mislabels = true},
};

// One member of ten barriers in succession says that it was in the one after.
void Mislabel(std::vector<Barrier>& barriers, Dice& dice) {
  constexpr size_t kWrong = 10;
  if (barriers.size() < 2 * kWrong) return;
  const size_t begin = dice.Next64() % (barriers.size() - 2 * kWrong);
  const uint32_t host = barriers[begin].members.front().host;
  const auto find = [&](Barrier& barrier) {
    return std::find_if(barrier.members.begin(), barrier.members.end(),
                        [&](const Barrier::Member& member) { return member.host == host; });
  };
  for (size_t i = begin + kWrong; i > begin; --i) {
    const auto from = find(barriers[i - 1]);
    const auto into = find(barriers[i]);
    if (from == barriers[i - 1].members.end() || into == barriers[i].members.end()) continue;
    *into = *from;
    barriers[i].mislabelled = true;
  }
}

}  // namespace

std::span<const BarrierScenario> BarrierScenarios() { return kScenarios; }

std::vector<Barrier> PlayBarriers(const BarrierScenario& scenario, std::span<const Host> hosts,
                                  uint64_t seed) {
  Dice dice(seed, kBarrierDice);
  const double interval_ns = 1e9 / scenario.barriers_per_s;
  const double end_ns = static_cast<double>(scenario.hosts.duration_ns) - 2 * interval_ns;
  std::vector<Barrier> barriers;
  std::vector<int64_t> enters(hosts.size());
  for (double begin_ns = interval_ns; begin_ns < end_ns; begin_ns += interval_ns) {
    int64_t last_ns = 0;
    for (int64_t& enter_ns : enters) {
      enter_ns = static_cast<int64_t>(
          begin_ns + std::min(dice.Exponential(scenario.straggler_ns), interval_ns / 2));
      last_ns = std::max(last_ns, enter_ns);
    }
    Barrier barrier{.sequence = barriers.size(), .members = {}};
    for (uint32_t host = 0; host < hosts.size(); ++host) {
      const int64_t exit_ns =
          last_ns + static_cast<int64_t>(scenario.latency_least_ns +
                                         dice.Exponential(scenario.latency_jitter_ns));
      if (dice.Chance(scenario.missing_chance)) continue;
      const TrueClock& raw = hosts[host].truth.raw;
      barrier.members.push_back(
          {.host = host, .enter_raw_ns = raw.Read(enters[host]), .exit_raw_ns = raw.Read(exit_ns)});
    }
    if (barrier.members.size() >= 2) barriers.push_back(std::move(barrier));
  }
  if (scenario.mislabels) Mislabel(barriers, dice);
  return barriers;
}

}  // namespace neurontrace
