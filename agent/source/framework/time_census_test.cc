// SPDX-License-Identifier: Apache-2.0
// Which times of a file are plausible.
#include "agent/source/framework/time_census.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

constexpr uint64_t kToday = 1'790'000'000'000'000'000;
constexpr uint64_t kDayNs = 86'400'000'000'000;

TimeCensus Of(const std::vector<uint64_t>& times) {
  TimeCensus census;
  for (const uint64_t ns : times) census.Add({.ns = ns});
  return census;
}

TEST(TimeCensus, ZeroIsInvalidAmongWallClockTimes) {
  const TimeCensus census = Of({0, 0, 0, 0, kToday, kToday + 5});
  const TimeBounds bounds = census.Bounds(0);
  EXPECT_FALSE(bounds.Place(0, {}));
  EXPECT_EQ(bounds.Place(0, {.ns = kToday - 200 * kDayNs}), kToday - 200 * kDayNs);
  EXPECT_EQ(bounds.Place(0, {.ns = kToday + 200 * kDayNs}), kToday + 200 * kDayNs);
  EXPECT_FALSE(bounds.Place(0, {.ns = 5}));
  EXPECT_FALSE(bounds.Place(0, {.ns = UINT64_MAX}));
  EXPECT_FALSE(bounds.Place(0, {.ns = 5, .negative = true}));
  EXPECT_EQ(census.FirstTime(0), kToday);
}

TEST(TimeCensus, ZeroIsValidAmongRelativeTimes) {
  const TimeCensus census = Of({0, 5, 7});
  EXPECT_EQ(census.Bounds(0).Place(0, {}), 0u);
  EXPECT_EQ(census.FirstTime(0), 0u);
  EXPECT_FALSE(census.Bounds(0).Place(0, {.ns = kToday})) << "one of today among them is none";
  // And where a base is added.
  EXPECT_EQ(census.FirstTime(kToday), kToday);
  EXPECT_EQ(census.Bounds(kToday).Place(kToday, {.ns = 5, .negative = true}), kToday - 5);
  EXPECT_FALSE(census.Bounds(kToday).Place(kToday, {.ns = kToday, .negative = true}))
      << "what a device that never finished looks like then";
}

TEST(TimeCensus, FewOutliersChangeNothing) {
  const TimeCensus census = Of({kToday, 3, kToday + 1, UINT64_MAX, kToday + 2});
  EXPECT_EQ(census.FirstTime(0), kToday);
  EXPECT_FALSE(census.Bounds(0).Place(0, {.ns = 3}));
  EXPECT_EQ(Of({3, kToday, kToday}).FirstTime(0), kToday);
}

TEST(TimeCensus, ManyScatteredOutliersChangeNothing) {
  constexpr uint64_t kYear2100 = 4'102'444'800'000'000'000;
  EXPECT_EQ(Of({kToday, kToday + 500, kYear2100, INT64_MAX}).FirstTime(0), kToday);
  std::vector<uint64_t> times(10, kToday);
  for (uint64_t i = 0; i < 11; ++i) times.push_back(kYear2100 + i * 300 * kDayNs);
  EXPECT_EQ(Of(times).FirstTime(0), kToday);
  EXPECT_FALSE(Of(times).Bounds(0).Place(0, {.ns = kYear2100}));
  EXPECT_EQ(Of({kToday, kToday + 200 * kDayNs}).FirstTime(0), kToday) << "of two the first";
}

TEST(TimeCensus, AcceptsEverythingWithoutSamples) {
  EXPECT_FALSE(TimeCensus().FirstTime(7));
  EXPECT_EQ(TimeCensus().Bounds(0).Place(0, {.ns = TimeBounds::kLastNs}), TimeBounds::kLastNs);
  EXPECT_FALSE(TimeCensus().Bounds(0).Place(0, {.ns = TimeBounds::kLastNs + 1}));
  EXPECT_EQ(Of({0, 0}).FirstTime(7), 7u);
  // All beyond what can be written.
  EXPECT_FALSE(Of({UINT64_MAX}).FirstTime(0));
}

TEST(TimeCensus, ExaminesOnlyFirstEvents) {
  TimeCensus census;
  for (size_t i = 0; i < limits::kFrameworkTimesSampledMax; ++i) {
    EXPECT_FALSE(census.is_full());
    census.Add({.ns = kToday});
  }
  EXPECT_TRUE(census.is_full());
  for (size_t i = 0; i < 1'000; ++i) census.Add({.ns = 1});
  EXPECT_TRUE(census.Bounds(0).Place(0, {.ns = kToday}));
}

}  // namespace
}  // namespace neurontrace
