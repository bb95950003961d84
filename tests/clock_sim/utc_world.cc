// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/utc_world.h"

#include <algorithm>
#include <cmath>

namespace neurontrace {
namespace {

enum DicePart : uint64_t { kUtcClockDice = 301, kKeeperDice = 302 };

// The reference wanders against UTC as any counter does.
ClockPlan PlanUtc(uint64_t seed) {
  Dice dice(seed, kUtcClockDice);
  return {.origin_ns = 1'790'000'123'456'789'000,
          .frequency_ppm = dice.Normal(15),
          .wave_ppm = dice.Between(0.1, 0.3),
          .wave_period_s = dice.Between(200, 900),
          .wave_phase = dice.Between(0, 6)};
}

bool IsBefore(const UtcReading& a, const UtcReading& b) { return a.raw_ns < b.raw_ns; }

}  // namespace

SimUtcWorld::SimUtcWorld(uint64_t seed, int64_t duration_ns)
    : seed_(seed),
      duration_ns_(duration_ns),
      utc_(PlanUtc(seed), duration_ns, Dice(seed, kUtcClockDice, 1)) {}

UtcReading SimUtcWorld::ReadOnce(const UtcPlan& plan, int64_t true_ns, uint64_t raw_ns,
                                 double bias_ns, Dice& dice) const {
  const double off =
      std::clamp(bias_ns + dice.Normal(plan.bound_ns / 10), -plan.bound_ns, plan.bound_ns);
  const uint64_t middle =
      utc_.Read(true_ns) + static_cast<uint64_t>(std::llround(off + plan.lie_ns));
  // A nanosecond for the rounding of stamps.
  const auto half = static_cast<uint64_t>(std::ceil(plan.bound_ns)) + 1;
  return {plan.source, raw_ns, middle - half, middle + half};
}

std::vector<UtcReading> SimUtcWorld::Read(const std::vector<UtcPlan>& plans, const TrueClock& raw,
                                          Dice dice) const {
  std::vector<UtcReading> readings;
  for (const UtcPlan& plan : plans) {
    const double bias_ns = dice.Between(-plan.bound_ns / 2, plan.bound_ns / 2);
    auto at = static_cast<int64_t>(dice.Between(0, static_cast<double>(plan.interval_ns)));
    for (; at < duration_ns_; at += plan.interval_ns) {
      const int64_t true_ns = raw.WhenRunning(at);
      readings.push_back(ReadOnce(plan, true_ns, raw.Read(true_ns), bias_ns, dice));
    }
  }
  std::stable_sort(readings.begin(), readings.end(), IsBefore);
  return readings;
}

ClockEvidence SimUtcWorld::ReadKeeper(const std::vector<UtcPlan>& plans,
                                      const ReferenceClock& reference) const {
  ClockEvidence keeper;
  Dice dice(seed_, kKeeperDice);
  for (const UtcPlan& plan : plans) {
    const double bias_ns = dice.Between(-plan.bound_ns / 2, plan.bound_ns / 2);
    for (int64_t at = 0; at < duration_ns_; at += plan.interval_ns) {
      // Its raw is the reference; that it begins at another number changes nothing.
      const uint64_t now_ns = reference.Read(at);
      const ClockExchange tie{now_ns,          now_ns, now_ns, now_ns, reference.EpochAt(at),
                              ProbePath::kPeer};
      keeper.exchanges.push_back(tie);
      keeper.utc.push_back(ReadOnce(plan, at, now_ns, bias_ns, dice));
    }
  }
  std::stable_sort(keeper.utc.begin(), keeper.utc.end(), IsBefore);
  return keeper;
}

}  // namespace neurontrace
