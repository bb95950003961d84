// SPDX-License-Identifier: Apache-2.0
// Goal: the interval follows the rate between its bounds, a small ring shortens the longest one,
// and the order of cores saves what going round them would lose, without starving any. Method: the
// schedule alone, and over simulated rings that overwrite.
#include "tap/drain_schedule.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"

namespace neurontrace::tap {
namespace {

constexpr uint64_t kNow = 1'000 * kNsPerSecond;
constexpr uint64_t kFetch = 4096;

class DrainScheduleTest : public ::testing::Test {
 protected:
  void Begin(uint32_t cores, uint64_t ring_events) {
    schedule_.Begin(kNow, cores, ring_events, kFetch);
  }
  void Drained(uint32_t core, uint64_t events, uint64_t now_ns = kNow) {
    schedule_.Drained(core, now_ns, now_ns, events, false);
  }
  // All that are due now, in order, each found empty.
  std::vector<uint32_t> Due(uint64_t now_ns) {
    std::vector<uint32_t> due;
    for (uint32_t core = 0; (core = schedule_.Next(now_ns)) != DrainSchedule::kNoSlot;) {
      due.push_back(core);
      schedule_.Drained(core, now_ns, now_ns, 0, false);
    }
    return due;
  }

  DrainSchedule schedule_;
};

TEST_F(DrainScheduleTest, AllCoresAreDueAtOnce) {
  Begin(64, 65536);
  EXPECT_EQ(schedule_.NextDueNs(), kNow);
  EXPECT_EQ(Due(kNow).size(), 64u);
  EXPECT_TRUE(Due(kNow).empty());
}

TEST_F(DrainScheduleTest, NothingIsDueWithoutCores) {
  Begin(0, 65536);
  EXPECT_EQ(schedule_.NextDueNs(), kNeverNs);
  EXPECT_EQ(schedule_.Next(kNow), DrainSchedule::kNoSlot);
}

TEST_F(DrainScheduleTest, PollsQuietCoresEvery200Ms) {
  Begin(1, 65536);
  for (int i = 0; i < 10; ++i) Drained(0, 0);
  EXPECT_EQ(schedule_.interval_ns(0), DrainSchedule::kIntervalMaxNs);
  EXPECT_EQ(schedule_.NextDueNs(), kNow + 200 * kNsPerMs);
}

TEST_F(DrainScheduleTest, FullFetchesShortenTheIntervalDownTo5Ms) {
  Begin(1, 65536);
  for (int i = 0; i < 10; ++i) Drained(0, 0);
  Drained(0, kFetch);
  EXPECT_EQ(schedule_.interval_ns(0), 50 * kNsPerMs);
  Drained(0, kFetch / 2);
  EXPECT_EQ(schedule_.interval_ns(0), 25 * kNsPerMs);
  for (int i = 0; i < 10; ++i) Drained(0, 3 * kFetch);
  EXPECT_EQ(schedule_.interval_ns(0), DrainSchedule::kIntervalMinNs);
}

TEST_F(DrainScheduleTest, ACoreStaysDueUntilAFetchComesBackThin) {
  Begin(1, 65536);
  EXPECT_EQ(schedule_.Next(kNow), 0u);
  schedule_.Drained(0, kNow, kNow, kFetch, true);
  EXPECT_EQ(schedule_.Next(kNow), 0u);
  schedule_.Drained(0, kNow, kNow, 10, false);
  EXPECT_EQ(schedule_.Next(kNow), DrainSchedule::kNoSlot);
}

TEST_F(DrainScheduleTest, SettlesWhereFetchesComeBackPartlyFull) {
  // A steady rate must find one interval and stay there, with fetches between 1/8 and 1/2 full.
  for (const uint64_t rate : {2'000u, 20'000u, 85'000u, 300'000u}) {
    Begin(1, 1 << 20);
    uint64_t events = 0;
    for (int i = 0; i < 50; ++i) {
      events = rate * schedule_.interval_ns(0) / kNsPerSecond;
      Drained(0, events);
    }
    EXPECT_LT(events, kFetch / 2) << rate;
    EXPECT_EQ(events, rate * schedule_.interval_ns(0) / kNsPerSecond) << rate;
  }
}

TEST_F(DrainScheduleTest, A64kRingAt85000EventsASecondNeverWraps) {
  // Even right after a quiet time, when the interval is the longest.
  Begin(1, 65536);
  for (int i = 0; i < 10; ++i) Drained(0, 0);
  EXPECT_LT(85'000 * schedule_.interval_ns(0) / kNsPerSecond, 65536 / 2);
}

TEST_F(DrainScheduleTest, ASmallRingShortensTheLongestInterval) {
  Begin(1, 4096);
  for (int i = 0; i < 10; ++i) Drained(0, 0);
  EXPECT_EQ(schedule_.interval_ns(0), 4096 * (kNsPerSecond / 200'000));
}

TEST_F(DrainScheduleTest, CoresKeepTheirOwnPace) {
  Begin(2, 65536);
  for (int i = 0; i < 10; ++i) {
    Drained(0, 0);
    Drained(1, kFetch);
  }
  EXPECT_EQ(schedule_.interval_ns(0), DrainSchedule::kIntervalMaxNs);
  EXPECT_EQ(schedule_.interval_ns(1), DrainSchedule::kIntervalMinNs);
  EXPECT_EQ(Due(kNow + 5 * kNsPerMs), std::vector<uint32_t>{1});
}

TEST_F(DrainScheduleTest, TheCoreNearestToOverwritingComesFirst) {
  Begin(3, 65536);
  const uint64_t later = kNow + 100 * kNsPerMs;
  Drained(0, 100, later);
  Drained(1, 2000, later);
  Drained(2, 700, later);
  EXPECT_LT(schedule_.NsToOverwrite(1, later), schedule_.NsToOverwrite(2, later));
  EXPECT_EQ(Due(later + 60 * kNsPerMs), (std::vector<uint32_t>{1, 2, 0}));
}

TEST_F(DrainScheduleTest, EverySecondFetchIsForTheCoreThatHasWaitedLongest) {
  Begin(2, 65536);
  const uint64_t later = kNow + 100 * kNsPerMs;
  Drained(0, 10, later);
  Drained(1, 10'000, later);
  const uint64_t overdue = later + DrainSchedule::kIntervalMaxNs + DrainSchedule::kOverdueNs;
  std::vector<uint32_t> order;
  for (int i = 0; i < 4; ++i) {
    order.push_back(schedule_.Next(overdue));
    if (order.back() == 1) schedule_.Drained(1, overdue, overdue, kFetch, true);
  }
  EXPECT_EQ(order, (std::vector<uint32_t>{1, 0, 1, 0}));
}

// Rings of a runtime whose fetch is slow, and somebody who drains them.
class SimulatedRings {
 public:
  struct Ring {
    double rate = 0;  // events a second
    double waiting = 0;
    double lost = 0;
    uint64_t fetched_ns = kNow;
    uint64_t longest_gap_ns = 0;
  };
  SimulatedRings(uint32_t cores, double quiet, double loud, double capacity)
      : rings(cores), capacity_(capacity) {
    for (Ring& ring : rings) ring.rate = quiet;
    rings[cores / 2].rate = loud;
  }

  void Pass(uint64_t ns) {
    now_ns += ns;
    for (Ring& ring : rings) {
      ring.waiting += ring.rate * static_cast<double>(ns) / 1e9;
      ring.lost += std::max(0.0, ring.waiting - capacity_);
      ring.waiting = std::min(ring.waiting, capacity_);
    }
  }
  uint64_t Fetch(uint32_t core, uint64_t fetch_ns) {
    Ring& ring = rings[core];
    const auto events = static_cast<uint64_t>(std::min<double>(ring.waiting, kFetch));
    ring.waiting -= static_cast<double>(events);
    ring.longest_gap_ns = std::max(ring.longest_gap_ns, now_ns - ring.fetched_ns);
    ring.fetched_ns = now_ns;
    Pass(fetch_ns);
    return events;
  }
  double Lost() const {
    double lost = 0;
    for (const Ring& ring : rings) lost += ring.lost;
    return lost;
  }

  uint64_t now_ns = kNow;
  std::vector<Ring> rings;

 private:
  const double capacity_;
};

constexpr uint32_t kCores = 16;
constexpr uint64_t kSlowFetchNs = 10 * kNsPerMs;
constexpr double kRingEvents = 8192;
constexpr double kQuiet = 1'400;
constexpr double kLoud = 50 * kQuiet;  // fills its ring in 117 ms; one time round takes 160 ms
constexpr uint64_t kRunNs = 20 * kNsPerSecond;

TEST_F(DrainScheduleTest, GoingRoundSlowlyLosesEventsOfALoudCore) {
  // What this order is measured against: every core in turn and those that came full again, each
  // round beginning one core later.
  SimulatedRings world(kCores, kQuiet, kLoud, kRingEvents);
  for (uint32_t first = 0; world.now_ns < kNow + kRunNs; ++first) {
    std::vector<uint32_t> pending;
    for (uint32_t i = 0; i < kCores; ++i) pending.push_back((first + i) % kCores);
    for (int pass = 0; !pending.empty() && pass < 16; ++pass) {
      std::erase_if(pending,
                    [&](uint32_t core) { return world.Fetch(core, kSlowFetchNs) * 2 < kFetch; });
    }
  }
  EXPECT_GT(world.Lost(), 50'000);
}

TEST_F(DrainScheduleTest, TheNearestFirstLosesNothingAndStarvesNoCore) {
  SimulatedRings world(kCores, kQuiet, kLoud, kRingEvents);
  Begin(kCores, static_cast<uint64_t>(kRingEvents));
  while (world.now_ns < kNow + kRunNs) {
    const uint32_t core = schedule_.Next(world.now_ns);
    if (core == DrainSchedule::kNoSlot) {
      world.Pass(schedule_.NextDueNs() - world.now_ns);
      continue;
    }
    const uint64_t fetched_ns = world.now_ns;
    const uint64_t events = world.Fetch(core, kSlowFetchNs);
    schedule_.Drained(core, fetched_ns, world.now_ns, events, events * 2 >= kFetch);
  }
  EXPECT_EQ(world.Lost(), 0);
  const uint64_t bound_ns = DrainSchedule::kIntervalMaxNs + DrainSchedule::kOverdueNs +
                            uint64_t{2} * kCores * kSlowFetchNs;
  for (const SimulatedRings::Ring& ring : world.rings) EXPECT_LE(ring.longest_gap_ns, bound_ns);
}

TEST_F(DrainScheduleTest, CoresThatAreAllTooLoudShareTheLoss) {
  SimulatedRings world(4, 200'000, 800'000, kRingEvents);
  Begin(4, static_cast<uint64_t>(kRingEvents));
  std::vector<uint64_t> fetched(4);
  while (world.now_ns < kNow + kRunNs) {
    const uint32_t core = schedule_.Next(world.now_ns);
    ASSERT_NE(core, DrainSchedule::kNoSlot);
    const uint64_t fetched_ns = world.now_ns;
    const uint64_t events = world.Fetch(core, kSlowFetchNs);
    fetched[core] += events;
    schedule_.Drained(core, fetched_ns, world.now_ns, events, events * 2 >= kFetch);
  }
  EXPECT_GT(world.Lost(), 0);
  const uint64_t most = *std::max_element(fetched.begin(), fetched.end());
  const uint64_t least = *std::min_element(fetched.begin(), fetched.end());
  EXPECT_LT(most, 8 * least);
}

}  // namespace
}  // namespace neurontrace::tap
