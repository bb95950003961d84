// SPDX-License-Identifier: Apache-2.0
#include "agent/clock/snapshot_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/random.h"
#include "lib/clock/fake_host_clocks.h"
#include "lib/clock/host_clocks.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {
namespace {

using ::testing::Contains;

constexpr uint64_t kStepNs = 100'000'000;

class SnapshotFilterTest : public testing::Test {
 protected:
  void Run(int snapshots) {
    for (int i = 0; i < snapshots; ++i) {
      clocks_.AdvanceNs(kStepNs);
      all_.push_back(ReadHostClocks(clocks_));
      filter_.Add(all_.back(), kept_);
    }
  }
  // The greatest distance of REALTIME, in any snapshot, from the straight line between the kept
  // ones around it.
  double WorstNs() const {
    double worst = 0;
    size_t next = 0;
    for (const ClockSnapshot& snapshot : all_) {
      while (next < kept_.size() && kept_[next].raw_begin_ns < snapshot.raw_begin_ns) ++next;
      if (next == 0 || next == kept_.size()) continue;
      const ClockSnapshot& a = kept_[next - 1];
      const ClockSnapshot& b = kept_[next];
      const double share = static_cast<double>(snapshot.raw_begin_ns - a.raw_begin_ns) /
                           static_cast<double>(b.raw_begin_ns - a.raw_begin_ns);
      const auto rise = static_cast<double>(RealtimeMinusRaw(b) - RealtimeMinusRaw(a));
      const auto went = static_cast<double>(RealtimeMinusRaw(snapshot) - RealtimeMinusRaw(a));
      worst = std::max(worst, std::abs(went - share * rise));
    }
    return worst;
  }

  FakeHostClocks clocks_;
  SnapshotFilter filter_;
  std::vector<ClockSnapshot> all_;
  std::vector<ClockSnapshot> kept_;
};

TEST_F(SnapshotFilterTest, KeepsTheFirstAndThenOneASecondOfASteadyClock) {
  clocks_.SteerPpm(12.5);
  Run(1'000);
  EXPECT_GE(kept_.size(), 98u);
  EXPECT_LE(kept_.size(), 104u);
  EXPECT_EQ(kept_[2], all_[2]);
  EXPECT_EQ(kept_.front(), all_.front());
  EXPECT_LE(WorstNs(), 150);
}

TEST_F(SnapshotFilterTest, KeepsBothSidesOfAChangeOfSteering) {
  Run(20);
  clocks_.SteerPpm(300);
  Run(20);
  EXPECT_LE(kept_.size(), 8u);
  EXPECT_THAT(kept_, Contains(all_[19]));
  EXPECT_THAT(kept_, Contains(all_[20]));
}

TEST_F(SnapshotFilterTest, FollowsUnreportedSlew) {
  Run(20);
  clocks_.SlewUnseenPpm(80);
  Run(30);
  clocks_.SlewUnseenPpm(0);
  Run(20);
  filter_.Keep(all_.back(), kept_);
  EXPECT_LE(WorstNs(), 250);  // 50 and the brackets
  EXPECT_LT(kept_.size(), 16u);
}

TEST_F(SnapshotFilterTest, KeepsBothSidesOfAStep) {
  Run(20);
  clocks_.StepRealtimeNs(3'000);
  Run(20);
  filter_.Keep(all_.back(), kept_);
  EXPECT_LE(WorstNs(), 250);
  EXPECT_THAT(kept_, Contains(all_[19]));
  EXPECT_THAT(kept_, Contains(all_[20]));
}

TEST_F(SnapshotFilterTest, DropsAndCountsExcessSnapshots) {
  SeededRandom random(1);
  for (int i = 0; i < 2'000; ++i) {
    clocks_.SteerPpm(static_cast<double>(random.Next64() % 1'000));
    Run(1);
  }
  EXPECT_GT(filter_.dropped_snapshots(), 1'000u);
  EXPECT_LE(kept_.size(), SnapshotFilter::kKeptAtOnceMax + 200 * SnapshotFilter::kKeptPerSecond);
  EXPECT_GE(kept_.size(), 300u);
  for (size_t i = 1; i < kept_.size(); ++i) {
    EXPECT_LT(kept_[i - 1].raw_begin_ns, kept_[i].raw_begin_ns);
  }
}

}  // namespace
}  // namespace neurontrace
