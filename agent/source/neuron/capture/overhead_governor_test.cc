// SPDX-License-Identifier: Apache-2.0
// Goal: a worker costs no more than its budget for longer than a second while anything can be left
// out, and steps do not follow each other without end, whatever the load. Loads are made up, time
// is advanced.
#include "agent/source/neuron/capture/overhead_governor.h"
#include "lib/base/time_units.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

namespace neurontrace {
namespace {

constexpr uint64_t kTick = kNsPerSecond / 5;
constexpr uint32_t kSteps = 6;

// A worker whose cost is a function of the step and of time.
class Worker {
 public:
  using CorePpm = std::function<double(uint32_t step, double seconds)>;

  Worker(const OverheadBudget& budget, CorePpm core_ppm, uint32_t steps = kSteps)
      : governor(budget, steps), core_ppm_(std::move(core_ppm)) {
    governor.Begin(now_ns, Totals());
  }

  void Run(double seconds) {
    const auto end_ns = now_ns + static_cast<uint64_t>(seconds * 1e9);
    while (now_ns < end_ns) Tick();
  }
  void Tick() {
    now_ns += kTick;
    const double ppm = core_ppm_(governor.step(), static_cast<double>(now_ns) * 1e-9);
    core_ns_ += ppm * 1e-6 * static_cast<double>(kTick);
    bytes_ += bytes_per_second * 0.2;
    over_ns = ppm > governor.budget().core_ppm ? over_ns + kTick : 0;
    over_max_ns = std::max(over_max_ns, governor.step() + 1 < kSteps ? over_ns : 0);
    if (const auto decision = governor.Observe(now_ns, Totals())) {
      decisions.push_back(*decision);
      at_ns.push_back(now_ns);
      over_ns = 0;
      governor.Begin(now_ns, Totals());
    }
  }
  OverheadTotals Totals() const {
    return {static_cast<uint64_t>(core_ns_), static_cast<uint64_t>(bytes_)};
  }

  OverheadGovernor governor;
  double bytes_per_second = 0;
  uint64_t now_ns = 77 * kNsPerSecond;
  uint64_t over_ns = 0;      // in a row, at one step
  uint64_t over_max_ns = 0;  // while there was a poorer one
  std::vector<OverheadGovernor::Decision> decisions;
  std::vector<uint64_t> at_ns;

 private:
  CorePpm core_ppm_;
  double core_ns_ = 0;
  double bytes_ = 0;
};

constexpr OverheadBudget kOnePercent = {.core_ppm = 10'000};
// What each step leaves of a load, by about the proportions of an eager workload.
constexpr double kLeft[kSteps] = {1, 0.45, 0.25, 0.17, 0.1, 0.08};

TEST(OverheadGovernor, LeavesOutNothingWithinTheBudget) {
  Worker worker(kOnePercent, [](uint32_t, double) { return 9'900; });
  worker.Run(600);
  EXPECT_TRUE(worker.decisions.empty());
  EXPECT_NEAR(worker.governor.cost()->core_ppm, 9'900, 100);
}

TEST(OverheadGovernor, ReducesFidelityEachSecondUntilWithinBudget) {
  Worker worker(kOnePercent, [](uint32_t step, double) { return 50'000 * kLeft[step]; });
  worker.Run(5);
  EXPECT_EQ(worker.governor.step(), 3u);
  ASSERT_EQ(worker.decisions.size(), 3u);
  for (const auto& decision : worker.decisions) EXPECT_TRUE(decision.lower_level);
  EXPECT_FALSE(worker.decisions[0].for_bytes);
  EXPECT_NEAR(worker.decisions[0].cost.core_ppm, 50'000, 500);
  EXPECT_EQ(worker.at_ns[0] - 77 * kNsPerSecond, kNsPerSecond);
  worker.Run(60);
  EXPECT_LE(worker.governor.cost()->core_ppm, 10'000);
}

TEST(OverheadGovernor, ABurstWithinASecondCostsNothing) {
  Worker worker(kOnePercent, [](uint32_t, double seconds) {
    return std::fmod(seconds, 2) < 0.3 ? 20'000 : 1'000;
  });
  worker.Run(60);
  EXPECT_TRUE(worker.decisions.empty());
}

TEST(OverheadGovernor, StaysAtLowestFidelity) {
  Worker worker(kOnePercent, [](uint32_t, double) { return 500'000; });
  worker.Run(60);
  EXPECT_EQ(worker.governor.step(), kSteps - 1);
  EXPECT_EQ(worker.decisions.size(), kSteps - 1);
}

TEST(OverheadGovernor, HoldsABudgetOfBytes) {
  Worker worker({.bytes_per_second = 1'000'000}, [](uint32_t, double) { return 900'000; });
  worker.bytes_per_second = 3'000'000;
  worker.Run(1.2);
  ASSERT_EQ(worker.decisions.size(), 1u);
  EXPECT_TRUE(worker.decisions[0].for_bytes);
  worker.bytes_per_second = 500'000;
  worker.Run(4.8);
  EXPECT_EQ(worker.decisions.size(), 1u);
  worker.bytes_per_second = 50'000;
  worker.Run(30);
  EXPECT_EQ(worker.governor.step(), 0u);
}

TEST(OverheadGovernor, RaisesFidelityWhenLoadDrops) {
  double load = 100'000;
  Worker worker(kOnePercent, [&](uint32_t step, double) { return load * kLeft[step]; });
  worker.Run(10);
  EXPECT_EQ(worker.governor.step(), 4u);
  load = 2'000;
  worker.Run(4.8);
  EXPECT_EQ(worker.governor.step(), 4u);
  worker.Run(30);
  EXPECT_EQ(worker.governor.step(), 0u);
  EXPECT_EQ(worker.governor.pause_ns(), OverheadGovernor::kPauseMinNs);
}

// What the richer step would cost is remembered in proportion: it does not try what cannot work.
TEST(OverheadGovernor, DoesNotTryFidelityKnownToExceedBudget) {
  Worker worker(kOnePercent, [](uint32_t step, double) { return 15'000 * kLeft[step]; });
  worker.Run(600);
  EXPECT_EQ(worker.decisions.size(), 1u);
  EXPECT_EQ(worker.governor.step(), 1u);
}

TEST(OverheadGovernor, AMistakeDoublesThePause) {
  // The first step is far dearer than the second: after a while that is not believed any more.
  Worker worker(kOnePercent, [](uint32_t step, double) { return step == 0 ? 200'000 : 1'000; });
  worker.Run(3'600);
  const size_t mistakes = worker.decisions.size() / 2;
  EXPECT_GE(mistakes, 2u);
  EXPECT_LE(mistakes, 7u);
  ASSERT_GE(worker.at_ns.size(), 5u);
  EXPECT_GT(worker.at_ns[3] - worker.at_ns[2], 3 * (worker.at_ns[1] - worker.at_ns[0]) / 2);
}

TEST(OverheadGovernor, DecidesNothingBeforeADecisionIsInEffect) {
  OverheadGovernor governor(kOnePercent, kSteps);
  OverheadTotals totals;
  uint64_t now_ns = 0;
  const auto pass = [&] {
    now_ns += kTick;
    totals.core_ns += kTick;
    return governor.Observe(now_ns, totals);
  };
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(pass());  // not begun
  governor.Begin(now_ns, totals);
  int ticks = 1;
  while (!pass()) ++ticks;
  EXPECT_EQ(ticks, 5);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(pass());
  governor.Begin(now_ns, totals);
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(pass());
  EXPECT_TRUE(pass());
}

TEST(OverheadGovernor, TotalsThatGoBackAreNoCost) {
  OverheadGovernor governor(kOnePercent, kSteps);
  governor.Begin(0, {UINT64_MAX, UINT64_MAX});
  for (uint64_t i = 1; i < 100; ++i) EXPECT_FALSE(governor.Observe(i * kTick, {5, 5}));
}

// Whatever the load, as long as it does not change, there are few changes in an hour.
TEST(OverheadGovernorProperty, SettlesUnderAnyLoadThatStays) {
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> unit(0, 1);
    std::vector<double> cost = {1'000 * std::exp(unit(random) * 7)};
    for (uint32_t i = 1; i < kSteps; ++i) cost.push_back(cost.back() * unit(random));
    const double noise = unit(random) * 0.2;
    Worker worker(kOnePercent, [&](uint32_t step, double) {
      return cost[step] * (1 + noise * (unit(random) - 0.5));
    });
    worker.Run(3'600);
    EXPECT_LE(worker.decisions.size(), 40u);
    EXPECT_LE(worker.over_max_ns, kNsPerSecond + kTick);
  }
}

// Whatever the load does, a step richer comes at least five seconds after the step before it, the
// budget is exceeded for a second at the longest while there is something to leave out, and a
// load that comes back again and again finds longer and longer pauses.
TEST(OverheadGovernorProperty, StepsAreBoundedUnderRandomLoads) {
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> unit(0, 1);
    double load = 1'000;
    double next = 0;
    const double period = std::exp(unit(random) * 6);
    Worker worker(kOnePercent, [&](uint32_t step, double seconds) {
      if (seconds >= next) {
        load = 100 * std::exp(unit(random) * 8);
        next = seconds + period * unit(random);
      }
      return load * kLeft[step];
    });
    worker.Run(3'600);
    EXPECT_LE(worker.over_max_ns, kNsPerSecond + kTick);
    size_t raised = 0;
    for (size_t i = 0; i < worker.decisions.size(); ++i) {
      if (i > 0) {
        EXPECT_GE(worker.at_ns[i] - worker.at_ns[i - 1],
                  worker.decisions[i].lower_level ? kNsPerSecond : OverheadGovernor::kPauseMinNs);
      }
      raised += worker.decisions[i].lower_level ? 0 : 1;
    }
    const size_t lower_level = worker.decisions.size() - raised;
    EXPECT_LE(lower_level, raised + kSteps - 1);
    EXPECT_LE(worker.decisions.size(), 400u);
  }
}

TEST(OverheadGovernorProperty, ALoadThatComesAndGoesFindsLongerPauses) {
  Worker worker(kOnePercent, [](uint32_t step, double seconds) {
    return (std::fmod(seconds, 30) < 10 ? 100'000 : 500) * kLeft[step];
  });
  worker.Run(3'600);
  EXPECT_GT(worker.governor.pause_ns(), 4 * OverheadGovernor::kPauseMinNs);
  EXPECT_LE(worker.decisions.size(), 120u);
}

}  // namespace
}  // namespace neurontrace
