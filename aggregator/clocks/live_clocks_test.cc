// SPDX-License-Identifier: Apache-2.0
// A moment of the reference as hosts will see it, out of a store's evidence.
#include "aggregator/clocks/live_clocks.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "aggregator/store/store.h"
#include "lib/base/time_units.h"
#include "lib/trace/clock_evidence_codec.h"

namespace neurontrace {
namespace {

const HostBoot kLiveHost = {"i-a", "boot"};

// A host whose raw is 1,000 s behind the reference and runs 20 ppm slower, asked every second over
// a network of 50 us each way.
class LiveClocksTest : public ::testing::Test {
 protected:
  uint64_t RawAt(uint64_t reference_ns) const {
    const uint64_t passed_ns = reference_ns - begin_ns_;
    return begin_ns_ - 1'000 * kNsPerSecond + passed_ns - passed_ns / 50'000;
  }
  void Measure(uint64_t seconds) {
    ClockEvidence evidence;
    for (uint64_t i = 0; i < seconds; ++i) {
      const uint64_t at_ns = begin_ns_ + i * kNsPerSecond;
      evidence.exchanges.push_back({.send_raw_ns = RawAt(at_ns),
                                    .reference_receive_ns = at_ns + 50'000,
                                    .reference_send_ns = at_ns + 60'000,
                                    .receive_raw_ns = RawAt(at_ns + 110'000),
                                    .reference_epoch = 1,
                                    .path = ProbePath::kUdp});
    }
    clock_.AdvanceNs(seconds * kNsPerSecond);
    ASSERT_TRUE(store_->clocks()
                    .Put({{.host = kLiveHost,
                           .measured_realtime_ns = clock_.RealtimeNs(),
                           .observations = EncodeClockEvidence(evidence)}})
                    .ok());
  }

  FakeClock clock_;
  const uint64_t begin_ns_ = clock_.RealtimeNs();
  std::unique_ptr<Store> store_ = Store::Open("live", {.in_memory = true}).value();
};

TEST_F(LiveClocksTest, PredictsTimeWithBound) {
  Measure(10);
  LiveClocks clocks(store_->clocks(), clock_);
  clocks.RefreshNow();
  const uint64_t moment_ns = clock_.RealtimeNs() + 100'000'000;
  const auto told = clocks.MomentOn(kLiveHost, moment_ns);
  ASSERT_TRUE(told.has_value());
  const auto off_ns = static_cast<int64_t>(told->raw_ns - RawAt(moment_ns));
  EXPECT_LE(static_cast<uint64_t>(std::llabs(off_ns)), told->bound_ns);
  EXPECT_LE(std::llabs(off_ns), 50'000);
  EXPECT_LT(told->bound_ns, 1'000'000u);
}

TEST_F(LiveClocksTest, OmitsHostsWithoutRecentEvidence) {
  Measure(10);
  clock_.AdvanceNs(10 * LiveClocks::kEvidenceNs);
  LiveClocks clocks(store_->clocks(), clock_);
  clocks.RefreshNow();
  EXPECT_FALSE(clocks.MomentOn(kLiveHost, clock_.RealtimeNs()).has_value());
  EXPECT_FALSE(clocks.MomentOn({"i-b", "boot"}, clock_.RealtimeNs()).has_value());
}

TEST_F(LiveClocksTest, BoundsOfAllHostsThatAreKnown) {
  Measure(10);
  {
    LiveClocks clocks(store_->clocks(), clock_);
    clocks.RefreshNow();
    const uint64_t now_ns = clock_.RealtimeNs();
    const auto bounds = clocks.BoundsAt(now_ns);
    ASSERT_EQ(bounds.size(), 1u);
    EXPECT_EQ(bounds.at("i-a"), clocks.MomentOn(kLiveHost, now_ns)->bound_ns);
  }
  clock_.AdvanceNs(10 * LiveClocks::kEvidenceNs);  // with nobody's thread looking at it
  LiveClocks later(store_->clocks(), clock_);
  later.RefreshNow();
  EXPECT_TRUE(later.BoundsAt(clock_.RealtimeNs()).empty());
}

}  // namespace
}  // namespace neurontrace
