// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/host_scenario.h"

#include <numbers>

namespace neurontrace {
namespace {

enum DicePart : uint64_t { kPlanDice = 101, kRunDice = 102 };

int64_t Draw(Dice& dice, int64_t low_ns, int64_t high_ns) {
  return static_cast<int64_t>(
      dice.Between(static_cast<double>(low_ns), static_cast<double>(high_ns)));
}

void Benign(Dice&, Dice, uint32_t, HostPlan&) {}

void OneProbe(Dice&, Dice, uint32_t, HostPlan& plan) {
  plan.probes = {.burst = 1, .interval_ns = kSecond, .first = 0};
}

void ManyProbes(Dice&, Dice, uint32_t, HostPlan& plan) {
  plan.probes = {.burst = 4, .interval_ns = kSecond / 8, .first = 64};
}

void HeavyJitter(Dice& dice, Dice, uint32_t, HostPlan& plan) {
  plan.clock.walk_ppm_per_root_s = 0.02;
  plan.clock.wave_ppm = 0.5;
  plan.clock.wave_period_s = dice.Between(200, 400);
  plan.path.jitter_ns = 25'000;
  plan.path.tail_chance = 0.3;
  plan.path.tail_least_ns = 40'000;
  plan.path.tail_alpha = 1.1;
  plan.path.blocking_chance = 0.02;
  plan.path.loss_chance = 0.02;
}

void Asymmetry(Dice& dice, Dice, uint32_t, HostPlan& plan) {
  const int64_t half_ns = Draw(dice, -6 * kMicrosecond, 6 * kMicrosecond);
  plan.path.forward_ns += half_ns;
  plan.path.backward_ns -= half_ns;
}

void Congestion(Dice& dice, Dice, uint32_t, HostPlan& plan) {
  for (const int64_t delay_ns : {800 * kMicrosecond, 2 * kMillisecond}) {
    const int64_t begin_ns = Draw(dice, 20 * kSecond, 200 * kSecond);
    plan.path.congestions.push_back({.way = dice.Chance(0.5) ? Way::kForward : Way::kBackward,
                                     .begin_ns = begin_ns,
                                     .end_ns = begin_ns + 15 * kSecond,
                                     .delay_ns = delay_ns});
  }
}

// Half of the hosts migrate, the counter of the others steps by 70 us.
void Jumps(Dice& dice, Dice, uint32_t member, HostPlan& plan) {
  ClockJump jump{.at_ns = Draw(dice, 60 * kSecond, 180 * kSecond)};
  if (member % 2 == 0) {
    jump.step_ns = 250 * kMillisecond;
    jump.rate_step_ppm = 12;
  } else {
    jump.step_ns = (dice.Chance(0.5) ? 70 : -70) * kMicrosecond;
  }
  plan.clock.jumps.push_back(jump);
  plan.faults.push_back({.kind = ClockEventKind::kMigration, .at_ns = jump.at_ns});
}

void ReportedJumps(Dice& dice, Dice run, uint32_t member, HostPlan& plan) {
  Jumps(dice, run, member, plan);
  plan.faults.front().noticed = true;
}

void SmallSteps(Dice& dice, Dice, uint32_t, HostPlan& plan) {
  for (const int64_t begin_s : {50, 110, 170}) {
    const int64_t step_ns = Draw(dice, 20 * kMicrosecond, 70 * kMicrosecond);
    const int64_t at_ns = Draw(dice, begin_s * kSecond, (begin_s + 40) * kSecond);
    plan.clock.jumps.push_back({.at_ns = at_ns, .step_ns = dice.Chance(0.5) ? step_ns : -step_ns});
    plan.faults.push_back({.kind = ClockEventKind::kMigration, .at_ns = at_ns});
  }
}

// NTP corrects the frequency, then slews, then somebody sets the time.
void SlewAndStep(Dice& dice, Dice, uint32_t, HostPlan& plan) {
  const double steady_ppm = -plan.clock.frequency_ppm;
  const uint64_t slew = static_cast<uint64_t>(Draw(dice, 30 * kSecond, 120 * kSecond));
  const uint64_t step = static_cast<uint64_t>(Draw(dice, 150 * kSecond, 210 * kSecond));
  plan.steering = {
      {.raw_ns = 0, .rate_ppm = steady_ppm},
      {.raw_ns = slew, .rate_ppm = steady_ppm + 500, .told = false},
      {.raw_ns = slew + 16 * kSecond, .rate_ppm = steady_ppm},
      {.raw_ns = step, .rate_ppm = steady_ppm, .step_ns = -5 * kMillisecond},
  };
  plan.snapshot_interval_ns = kSecond / 10;
}

// chrony works off 8 ms at 83333 ppm; later the time is set back by 8 ms.
void FastSlew(Dice& dice, Dice, uint32_t, HostPlan& plan) {
  const double steady_ppm = -plan.clock.frequency_ppm;
  const uint64_t slew = static_cast<uint64_t>(Draw(dice, 30 * kSecond, 120 * kSecond));
  const uint64_t step = static_cast<uint64_t>(Draw(dice, 150 * kSecond, 210 * kSecond));
  plan.steering = {
      {.raw_ns = 0, .rate_ppm = steady_ppm},
      {.raw_ns = slew, .rate_ppm = steady_ppm + 83'333},
      {.raw_ns = slew + 96 * kMillisecond, .rate_ppm = steady_ppm},
      {.raw_ns = step, .rate_ppm = steady_ppm, .step_ns = -8 * kMillisecond},
  };
  plan.snapshot_interval_ns = kSecond / 10;
}

// A leap second: half of the hosts smear it over a day, the others set their clock back.
void Leap(Dice&, Dice run, uint32_t member, HostPlan& plan) {
  const double steady_ppm = -plan.clock.frequency_ppm;
  const uint64_t leap = static_cast<uint64_t>(Draw(run, 100 * kSecond, 140 * kSecond));
  if (member % 2 == 0) {
    plan.steering = {{.raw_ns = 0, .rate_ppm = steady_ppm - 1e6 / 86'400, .step_ns = -kSecond / 2}};
  } else {
    plan.steering = {{.raw_ns = 0, .rate_ppm = steady_ppm},
                     {.raw_ns = leap, .rate_ppm = steady_ppm, .step_ns = -kSecond}};
  }
  plan.snapshot_interval_ns = kSecond / 10;
}

void RouteChange(Dice& dice, Dice, uint32_t, HostPlan& plan) {
  plan.path.route_changes.push_back({.at_ns = Draw(dice, 60 * kSecond, 120 * kSecond),
                                     .forward_ns = 30 * kMicrosecond,
                                     .backward_ns = 0});
  plan.path.route_changes.push_back({.at_ns = Draw(dice, 140 * kSecond, 200 * kSecond),
                                     .forward_ns = 0,
                                     .backward_ns = -15 * kMicrosecond});
}

// Up to 0.5 ppm/s, ten times what the fit assumes.
void ExtremeWander(Dice& dice, Dice, uint32_t, HostPlan& plan) {
  plan.clock.walk_ppm_per_root_s = 0.1;
  plan.clock.wave_ppm = 4;
  plan.clock.wave_period_s = dice.Between(50, 70);
}

// The aggregator restarts, and half of the agents do.
void Restarts(Dice& dice, Dice, uint32_t member, HostPlan& plan) {
  if (member % 2 == 0) return;
  const int64_t begin_ns = Draw(dice, 40 * kSecond, 200 * kSecond);
  plan.agent_down.push_back({.begin_ns = begin_ns, .end_ns = begin_ns + 20 * kSecond});
}

std::vector<ReferenceClock::Restart> OneRestart(Dice run) {
  return {{.at_ns = Draw(run, 80 * kSecond, 160 * kSecond),
           .down_ns = Draw(run, 2 * kSecond, 5 * kSecond),
           .step_ns = static_cast<int64_t>(run.Normal(500e3))}};
}

// Hosts are paused by their hypervisor. On half of them the counter continues meanwhile.
void Pauses(Dice& dice, Dice, uint32_t member, HostPlan& plan) {
  const int64_t at_ns = Draw(dice, 60 * kSecond, 180 * kSecond);
  const int64_t length_ns = Draw(dice, 300 * kMillisecond, 3 * kSecond);
  if (member % 2 == 0) {
    plan.clock.jumps.push_back({.at_ns = at_ns, .step_ns = -length_ns});
  } else {
    plan.paused.push_back({.begin_ns = at_ns, .end_ns = at_ns + length_ns});
  }
  // The counter that continued shows that the heartbeat was late. That of one that stood still does
  // not: the hypervisor tells.
  plan.faults.push_back(
      {.kind = member % 2 == 0 ? ClockEventKind::kMigration : ClockEventKind::kPause,
       .at_ns = member % 2 == 0 ? at_ns : at_ns + length_ns,
       .noticed = true});
}

// Ways as between zones, which differ by up to 200 us; every machine has a clock in hardware that
// keeps UTC to 5 us.
void AsymmetryAndUtc(Dice& dice, Dice, uint32_t, HostPlan& plan) {
  const int64_t half_ns = Draw(dice, -100 * kMicrosecond, 100 * kMicrosecond);
  plan.path.forward_ns = 250 * kMicrosecond + half_ns;
  plan.path.backward_ns = 250 * kMicrosecond - half_ns;
  plan.utc.push_back({});
  plan.keeper_utc.push_back({});
}

// The same, but two of three such clocks break their promise: by more than probes leave open, or by
// so little that nobody can tell. Every host has chrony, too, and some of these lie as well.
void LyingUtc(Dice& dice, Dice run, uint32_t member, HostPlan& plan) {
  AsymmetryAndUtc(dice, run, member, plan);
  const double sign = dice.Chance(0.5) ? 1 : -1;
  if (member % 3 == 1) plan.utc.front().lie_ns = sign * dice.Between(1e6, 1e9);
  if (member % 3 == 2) plan.utc.front().lie_ns = sign * dice.Between(20e3, 200e3);
  plan.utc.push_back({.source = UtcSource::kChrony, .bound_ns = 100e3});
  if (dice.Chance(0.5)) plan.utc.back().lie_ns = -sign * dice.Between(100e3, 1e6);
}

constexpr HostScenario kScenarios[] = {
    {.name = "S1", .words = "benign", .plan = Benign},
    {.name = "S1-live",
     .words = "S1, mapped when its last event came",
     .after_ns = 0,
     .plan = Benign},
    {.name = "S1-1", .words = "S1 at 1 probe/s", .plan = OneProbe},
    {.name = "S1-32", .words = "S1 at 32 probes/s", .plan = ManyProbes},
    {.name = "S2", .words = "heavy jitter, loss, stronger wander", .plan = HeavyJitter},
    {.name = "S3", .words = "asymmetry up to 12 us", .symmetric = false, .plan = Asymmetry},
    {.name = "S4", .words = "one-way congestion, 0.8 and 2 ms for 15 s", .plan = Congestion},
    {.name = "S5",
     .words = "half migrate (+250 ms, +12 ppm), half step 70 us; unreported",
     .blind = true,
     .plan = Jumps},
    {.name = "S5-told", .words = "S5, reported by the hypervisor", .plan = ReportedJumps},
    {.name = "S5-small",
     .words = "three steps of 20 to 70 us; unreported",
     .blind = true,
     .plan = SmallSteps},
    {.name = "S6",
     .words = "REALTIME stamps: slew 500 ppm for 16 s, step -5 ms",
     .realtime_stamps = true,
     .plan = SlewAndStep},
    {.name = "S6-fast",
     .words = "REALTIME stamps: slew 83333 ppm, step -8 ms",
     .realtime_stamps = true,
     .plan = FastSlew},
    {.name = "S6-leap",
     .words = "REALTIME stamps: leap second, half of the hosts smear it",
     .realtime_stamps = true,
     .plan = Leap},
    {.name = "S7",
     .words = "one-way route changes, +30 and -15 us",
     .symmetric = false,
     .plan = RouteChange},
    {.name = "S8",
     .words = "wander ten times what is assumed",
     .beyond_assumptions = true,
     .plan = ExtremeWander},
    {.name = "S9",
     .words = "restarts of the aggregator and of half of the agents",
     .plan = Restarts,
     .restarts = OneRestart},
    {.name = "S10", .words = "pauses of 0.3 to 3 s; reported", .plan = Pauses},
    {.name = "U1",
     .words = "ways differ by up to 200 us; a PHC on every machine",
     .symmetric = false,
     .plan = AsymmetryAndUtc},
    {.name = "U2",
     .words = "U1, but most sources of UTC are wrong",
     .symmetric = false,
     .plan = LyingUtc},
    {.name = "N1", .words = "S1 with 1 host", .hosts = 1, .plan = Benign},
    {.name = "N2", .words = "S1 with 2 hosts", .hosts = 2, .plan = Benign},
    {.name = "N16", .words = "S1 with 16 hosts", .hosts = 16, .plan = Benign},
    {.name = "N128", .words = "S1 with 128 hosts", .hosts = 128, .instants = 200, .plan = Benign},
    {.name = "N1000",
     .words = "S1 with 1,000 hosts",
     .hosts = 1000,
     .instants = 100,
     .plan = Benign},
};

}  // namespace

std::span<const HostScenario> HostScenarios() { return kScenarios; }

const HostScenario* FindHostScenario(std::string_view name) {
  for (const HostScenario& scenario : kScenarios) {
    if (scenario.name == name) return &scenario;
  }
  return nullptr;
}

HostPlan PlanHost(const HostScenario& scenario, uint64_t seed, uint32_t member) {
  Dice dice(seed, kPlanDice, member);
  HostPlan plan;
  plan.clock.origin_ns = kSecond + dice.Next64() % (100ull * 86'400 * kSecond);
  plan.clock.frequency_ppm = dice.Normal(15);
  plan.clock.wave_ppm = dice.Between(0.1, 0.3);
  plan.clock.wave_period_s = dice.Between(200, 900);
  plan.clock.wave_phase = dice.Between(0, 2 * std::numbers::pi);
  scenario.plan(dice, Dice(seed, kRunDice), member, plan);
  return plan;
}

ReferenceClock MakeReference(const HostScenario& scenario, uint64_t seed) {
  constexpr uint64_t kOrigin = 1'790'000'123'000'000'000;
  const Dice run(seed, kRunDice);
  return ReferenceClock(kOrigin, scenario.restarts == nullptr
                                     ? std::vector<ReferenceClock::Restart>{}
                                     : scenario.restarts(run));
}

}  // namespace neurontrace
