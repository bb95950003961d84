// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/realtime_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

namespace neurontrace {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kEpoch = 1'700'000'000 * kSecond;

// A host whose raw began at 0 and whose REALTIME is raw + offset, as its kernel steers it; the
// reference is raw + kEpoch, known to 1 us.
class RealtimeMapTest : public ::testing::Test {
 protected:
  RealtimeMapTest() {
    model_.segments = {{.knots = {{0, kEpoch, 1'000, 100},
                                  {50 * kSecond, kEpoch + 50 * kSecond, 1'000, 100},
                                  {1'000 * kSecond, kEpoch + 1'000 * kSecond, 1'000, 100}}}};
  }
  void Snap(uint64_t raw_ns, int64_t offset_ns, int64_t frequency = 0) {
    snapshots_.push_back({.raw_begin_ns = raw_ns - 50,
                          .raw_end_ns = raw_ns + 50,
                          .realtime_ns = raw_ns + kEpoch + static_cast<uint64_t>(offset_ns),
                          .frequency = frequency,
                          .tick_us = 10'000});
  }
  // The reference time of a moment at which REALTIME was so far ahead of the reference.
  void ExpectWithin(const ClockMap& map, uint64_t raw_ns, int64_t offset_ns,
                    std::optional<uint64_t> bound_max_ns = std::nullopt) {
    const uint64_t realtime_ns = raw_ns + kEpoch + static_cast<uint64_t>(offset_ns);
    const auto error_ns = static_cast<int64_t>(map.ToReference(realtime_ns) - (raw_ns + kEpoch));
    const auto bound_ns = map.ErrorBoundNs(realtime_ns);
    ASSERT_TRUE(bound_ns) << "at raw " << raw_ns;
    EXPECT_LE(std::abs(error_ns), static_cast<int64_t>(*bound_ns)) << "at raw " << raw_ns;
    if (bound_max_ns) {
      EXPECT_LE(*bound_ns, *bound_max_ns) << "at raw " << raw_ns;
    }
  }
  ClockMap Map() {
    auto map = MakeRealtimeMap(snapshots_, model_);
    EXPECT_TRUE(map.ok()) << map.status();
    return *map;
  }

  ClockModel model_;
  std::vector<ClockSnapshot> snapshots_;
};

TEST_F(RealtimeMapTest, FollowsAClockThatRunsEvenly) {
  for (uint64_t s = 10; s <= 100; s += 10) {
    Snap(s * kSecond, 2'000'000'000 - static_cast<int64_t>(s * 20'000), -20 * 65'536);
  }
  const ClockMap map = Map();
  for (uint64_t s = 10; s < 100; s += 3) {
    ExpectWithin(map, s * kSecond, 2'000'000'000 - static_cast<int64_t>(s * 20'000), 1'200);
  }
}

TEST_F(RealtimeMapTest, BoundsABendBetweenTwoSnapshots) {
  // 100 ppm for the first half of the second, -100 ppm for the other: back where it was.
  Snap(10 * kSecond, 0, 100 * 65'536);
  Snap(11 * kSecond, 0, -100 * 65'536);
  Snap(12 * kSecond, -100'000, -100 * 65'536);
  const ClockMap map = Map();
  ExpectWithin(map, 10 * kSecond + kSecond / 2, 50'000, 60'000);
  ExpectWithin(map, 11 * kSecond + kSecond / 2, -50'000, 1'200);
}

TEST_F(RealtimeMapTest, ASetForwardsLeavesAHoleInWhatItShowed) {
  Snap(10 * kSecond, 0);
  Snap(20 * kSecond, 0);
  Snap(20 * kSecond + kSecond / 10, 5'000 * static_cast<int64_t>(kSecond));
  Snap(30 * kSecond, 5'000 * static_cast<int64_t>(kSecond));
  const ClockMap map = Map();
  ExpectWithin(map, 15 * kSecond, 0, 1'200);
  ExpectWithin(map, 25 * kSecond, 5'000 * static_cast<int64_t>(kSecond), 1'200);
  // In the tenth of a second in which it was set: either.
  ExpectWithin(map, 20 * kSecond + kSecond / 20, 0, kSecond / 5);
  ExpectWithin(map, 20 * kSecond + kSecond / 20, 5'000 * static_cast<int64_t>(kSecond),
               kSecond / 5);
  uint64_t last_ns = 0;
  for (uint64_t at = kEpoch + 19 * kSecond; at < kEpoch + 5'030 * kSecond; at += kSecond / 7) {
    EXPECT_GE(map.ToReference(at), last_ns);
    last_ns = map.ToReference(at);
  }
}

TEST_F(RealtimeMapTest, ASetBackwardsShowsTimesTwiceAndBoundsBoth) {
  constexpr int64_t kBack = -8'000'000;
  Snap(10 * kSecond, 0);
  Snap(20 * kSecond, 0);
  Snap(20 * kSecond + kSecond / 1'000, kBack);
  Snap(30 * kSecond, kBack);
  const ClockMap map = Map();
  ExpectWithin(map, 19 * kSecond, 0, 1'200);
  ExpectWithin(map, 21 * kSecond, kBack, 1'200);
  for (uint64_t us = 0; us < 8'000; us += 250) {
    ExpectWithin(map, 20 * kSecond - us * 1'000, 0, 10'000'000);                  // before
    ExpectWithin(map, 20 * kSecond + 1'000'000 + us * 1'000, kBack, 10'000'000);  // after
  }
}

TEST_F(RealtimeMapTest, SaysLessAndLessOfWhatNobodySnapped) {
  Snap(10 * kSecond, 0);
  Snap(20 * kSecond, 0);
  const ClockMap map = Map();
  ExpectWithin(map, 25 * kSecond, 0, 3'000'000);
  ExpectWithin(map, 5 * kSecond, 0, 3'000'000);
  EXPECT_FALSE(map.ErrorBoundNs(kEpoch + 40 * kSecond));
  EXPECT_FALSE(map.ErrorBoundNs(kEpoch - 3'000 * kSecond));
  EXPECT_EQ(map.ToReference(kEpoch + 40 * kSecond), kEpoch + 40 * kSecond);
}

TEST_F(RealtimeMapTest, NeverRunsBackwardsWhereTheModelDoes) {
  model_.segments = {
      {.knots = {{0, kEpoch, 1'000, 100}, {15 * kSecond, kEpoch + 15 * kSecond, 1'000, 100}}},
      {.cause = SegmentCause::kHostEvent,
       .knots = {{16 * kSecond, kEpoch + 10 * kSecond, 1'000, 100},
                 {40 * kSecond, kEpoch + 34 * kSecond, 1'000, 100}}}};
  for (uint64_t s = 1; s < 30; s += 2) Snap(s * kSecond, 0);
  const ClockMap map = Map();
  uint64_t last_ns = 0;
  for (uint64_t at = kEpoch; at < kEpoch + 30 * kSecond; at += kSecond / 9) {
    EXPECT_GE(map.ToReference(at), last_ns) << at;
    last_ns = map.ToReference(at);
  }
}

TEST_F(RealtimeMapTest, NeedsASnapshotAndASegment) {
  EXPECT_TRUE(absl::IsInvalidArgument(MakeRealtimeMap({}, model_).status()));
  Snap(10 * kSecond, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(MakeRealtimeMap(snapshots_, {}).status()));
  EXPECT_TRUE(MakeRealtimeMap(snapshots_, model_).ok());
}

}  // namespace
}  // namespace neurontrace
