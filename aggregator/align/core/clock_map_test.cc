// SPDX-License-Identifier: Apache-2.0
// Goal: the map agrees with its pieces, never runs backwards, and inverts.
#include "aggregator/align/core/clock_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "aggregator/align/core/clock_maps.h"
#include "aggregator/align/core/clock_reading.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kEpoch = 1'750'000'000'000'000'000u;
constexpr int64_t kPpm = (int64_t{1} << ClockMap::kRateBits) / 1'000'000;

ClockMap TwoPieces() {
  auto map = ClockMap::FromPieces({{kEpoch, kEpoch + 500, 20 * kPpm, 100},
                                   {kEpoch + 1'000'000'000, kEpoch + 1'000'020'600, -30 * kPpm}});
  EXPECT_TRUE(map.ok()) << map.status();
  return *map;
}

TEST(ClockMapTest, IsIdentityByDefault) {
  ClockMap map;
  EXPECT_TRUE(map.is_identity());
  for (uint64_t raw : {uint64_t{0}, kEpoch, UINT64_MAX}) {
    EXPECT_EQ(map.ToReference(raw), raw);
    EXPECT_EQ(map.ToRaw(raw), raw);
    EXPECT_EQ(ClockMapCursor(map).ToReference(raw), raw);
  }
  EXPECT_EQ(map.ErrorBoundNs(kEpoch), std::nullopt);
}

TEST(ClockMapTest, AppliesOffsetAndRateOfThePieceThatHolds) {
  const ClockMap map = TwoPieces();
  EXPECT_EQ(map.ToReference(kEpoch), kEpoch + 500);
  EXPECT_NEAR(static_cast<double>(map.ToReference(kEpoch + 500'000'000) - kEpoch), 500'010'500, 1);
  EXPECT_EQ(map.ToReference(kEpoch + 1'000'000'000), kEpoch + 1'000'020'600);
  EXPECT_EQ(map.ErrorBoundNs(kEpoch + 1), 100u);
  EXPECT_EQ(map.ErrorBoundNs(kEpoch + 2'000'000'000), std::nullopt);
}

TEST(ClockMapTest, NeverRunsBackwardsAndInverts) {
  const ClockMap map = TwoPieces();
  ClockMapCursor cursor(map);
  std::mt19937_64 random(7);
  uint64_t raw = kEpoch - 2'000'000'000;
  uint64_t before = 0;
  while (raw < kEpoch + 3'000'000'000) {
    const uint64_t mapped = map.ToReference(raw);
    EXPECT_GE(mapped, before);
    EXPECT_EQ(cursor.ToReference(raw), mapped);
    const uint64_t back = map.ToRaw(mapped);
    EXPECT_LE(back, raw);
    EXPECT_EQ(map.ToReference(back), mapped);
    before = mapped;
    raw += random() % 1'000'000;
  }
}

TEST(ClockMapTest, CursorAgreesWithMapAfterAnyJump) {
  const ClockMap identity;
  const ClockMap two = TwoPieces();
  const ClockMap fast = *ClockMap::FromPieces(
      {{kEpoch, 10, -ClockMap::kRateMax, 5}, {2 * kEpoch, 2 * kEpoch, ClockMap::kRateMax, 6}});
  std::mt19937_64 random(9);
  for (const ClockMap* map : {&identity, &two, &fast}) {
    ClockMapCursor cursor(*map);
    for (int i = 0; i < 10'000; ++i) {
      uint64_t raw = random() >> (random() % 64);
      if (i % 3 == 1) raw = kEpoch - 1'000'000 + random() % 2'000'000'000;
      if (i % 100 == 2) raw = UINT64_MAX - random() % 3;
      EXPECT_EQ(cursor.ToReference(raw), map->ToReference(raw)) << raw;
      EXPECT_EQ(cursor.ErrorBoundNs(raw), map->ErrorBoundNs(raw)) << raw;
    }
  }
}

TEST(ClockMapTest, SaturatesAtTheEndsOfTheScale) {
  const auto map = ClockMap::FromPieces({{kEpoch, 10, 0}});
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map->ToReference(0), 0u);
  const auto late = ClockMap::FromPieces({{0, kEpoch, ClockMap::kRateMax}});
  ASSERT_TRUE(late.ok());
  EXPECT_EQ(late->ToReference(UINT64_MAX), UINT64_MAX);
}

TEST(ClockMapTest, RejectsInvalidPieces) {
  EXPECT_EQ(ClockMap::FromPieces({}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(ClockMap::FromPieces({{0, 0, ClockMap::kRateMax + 1}}).ok());
  EXPECT_FALSE(ClockMap::FromPieces({{10, 10, 0}, {10, 20, 0}}).ok());
  EXPECT_FALSE(ClockMap::FromPieces({{0, 100, 0}, {50, 100, 0}}).ok());
}

TEST(ClockMapsTest, KnowsClocksByMachineAndBoot) {
  ClockMaps maps;
  const WorkerIdentity worker{"i-a", "boot-1", 1, 2, "c"};
  maps.Set(worker, ClockDomain::kHostRealtime, TwoPieces());
  WorkerIdentity neighbour = worker;
  neighbour.pid = 9;
  EXPECT_FALSE(maps.For(neighbour, ClockDomain::kHostRealtime).is_identity());
  neighbour.boot_id = "boot-2";
  EXPECT_TRUE(maps.For(neighbour, ClockDomain::kHostRealtime).is_identity());
}

TEST(ClockMapsTest, KnowsDevicesByWorkerAndCore) {
  ClockMaps maps;
  const WorkerIdentity worker{"i-a", "boot-1", 1, 2, "c"};
  EXPECT_FALSE(maps.has_devices());
  EXPECT_TRUE(maps.Devices(worker, 4).empty());
  maps.SetDevice(worker, {4, 8}, {{{0, 9, 1, 2, TwoPieces()}}});
  maps.SetDevice(worker, {4, 9}, {});
  EXPECT_TRUE(maps.has_devices());
  ASSERT_EQ(maps.Devices(worker, 4).size(), 2u);
  EXPECT_EQ(maps.Devices(worker, 4)[0].physical, 8u);
  EXPECT_FALSE(maps.Devices(worker, 4)[0].map.parts[0].map.is_identity());
  EXPECT_TRUE(maps.Devices(worker, 4)[1].map.parts.empty());
  EXPECT_TRUE(maps.Devices(worker, 8).empty()) << "a logical core, not a physical one";
  maps.SetDevice(worker, {4, 8}, {});  // replaced
  EXPECT_EQ(maps.Devices(worker, 4).size(), 2u);
  EXPECT_TRUE(maps.Devices(worker, 4)[0].map.parts.empty());
  WorkerIdentity next = worker;
  next.start_time_ticks = 3;  // may have had the core reset
  EXPECT_TRUE(maps.Devices(next, 4).empty());
}

TEST(DeviceMapTest, DistinguishesCounterRunsByRing) {
  const DeviceMap map{{{10, 20, 1, 5, TwoPieces()}, {30, 40, 1, 6, TwoPieces()}}};
  for (const uint64_t sequence : {0, 10, 20}) EXPECT_EQ(map.For({sequence}), &map.parts[0]);
  for (const uint64_t sequence : {30, 40, 50}) EXPECT_EQ(map.For({sequence}), &map.parts[1]);
  EXPECT_EQ(map.For({25}), nullptr);
  EXPECT_EQ(map.For({25, 5}), nullptr) << "executions are numbered again from 1";
  EXPECT_EQ(map.For({}), nullptr);
  const DeviceMap once{{{10, 20, 1, 5, TwoPieces()}}};
  EXPECT_EQ(once.For({}), &once.parts[0]);
  EXPECT_EQ(DeviceMap{}.For({15}), nullptr);
}

TEST(DeviceMapTest, DistinguishesCounterRunsByExecution) {
  const DeviceMap map{{{10, 20, 1, 5, TwoPieces()}, {30, 40, 8, 9, TwoPieces()}}};
  EXPECT_EQ(map.For({25, 5}), &map.parts[0]);
  EXPECT_EQ(map.For({25, 8}), &map.parts[1]);
  EXPECT_EQ(map.For({25, 6}), nullptr);
  EXPECT_EQ(map.For({31, 5}), &map.parts[0]) << "an event recorded late";
}

ClockMap Map() {
  return *ClockMap::FromPieces(
      {{1'000, 51'000, 0, 30}, {2'000, 52'000, 0, {}}, {3'000, 53'000, 0, 40}});
}

TEST(ClockBoundsTest, AreOfThePiecesThatReachIntoTheWindow) {
  EXPECT_THAT(BoundsIn(Map(), {51'500, 53'500}),
              ElementsAre(ClockBound{51'500, 52'000, 30}, ClockBound{52'000, 53'000, kNoBound},
                          ClockBound{53'000, 53'500, 40}));
  EXPECT_THAT(BoundsIn(Map(), {53'000, 53'001}), ElementsAre(ClockBound{53'000, 53'001, 40}));
}

TEST(ClockBoundsTest, TheFirstAndTheLastHoldBeyond) {
  EXPECT_THAT(BoundsIn(Map(), {7, 9}), ElementsAre(ClockBound{7, 9, 30}));
  EXPECT_THAT(BoundsIn(Map(), {90'000, 95'000}), ElementsAre(ClockBound{90'000, 95'000, 40}));
}

// REALTIME was set ahead: from 2,000 to 3,000 it never was, and that took no time.
TEST(ClockBoundsTest, AreNotOfStampsThatNeverWere) {
  const ClockMap map = *ClockMap::FromPieces(
      {{1'000, 51'000, 0, 30}, {2'000, 52'000, -ClockMap::kRateMax, {}}, {3'000, 52'000, 0, 40}});
  EXPECT_THAT(BoundsIn(map, {51'500, 53'500}),
              ElementsAre(ClockBound{51'500, 52'000, 30}, ClockBound{52'000, 53'500, 40}));
}

TEST(ClockBoundsTest, BoundsOfInstantAndOfEmptyMap) {
  EXPECT_THAT(BoundsIn(Map(), {52'000, 52'000}), ElementsAre(ClockBound{52'000, 52'000, kNoBound}));
  EXPECT_THAT(BoundsIn(ClockMap(), {5, 6}), ElementsAre(ClockBound{5, 6, kNoBound}));
}

}  // namespace
}  // namespace neurontrace
