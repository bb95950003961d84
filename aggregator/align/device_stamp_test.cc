// SPDX-License-Identifier: Apache-2.0
// Goal: a hardware event is put on the host's clock anew only where it is clear how. Method: models
// of one knot, by hand.
#include "aggregator/align/device_stamp.h"

#include <gtest/gtest.h>

#include <vector>

namespace neurontrace {
namespace {

constexpr uint64_t kStampSecond = 1'000'000'000;

// y is x + offset from sequence `first` to `last`, within 5 us.
void AddSegment(DeviceClockModel& model, uint64_t x, uint64_t y, uint64_t first, uint64_t last) {
  model.clock.segments.push_back(
      {SegmentCause::kBegin,
       {{x, y, 5'000, 2'000}, {x + kStampSecond, y + kStampSecond, 5'000, 2'000}}});
  model.ranges.push_back({first, last, first / 10, last / 10, x, x + kStampSecond});
}

DeviceCoreClock CoreOf(std::optional<uint64_t> index, uint64_t x, uint64_t y) {
  DeviceCoreClock core{.device_core_idx = index, .model = {}};
  AddSegment(core.model, x, y, 100, 200);
  return core;
}

TEST(DeviceStampTest, TheCounterIsBelievedWhereItsCoreIsKnown) {
  const std::vector<DeviceCoreClock> cores = {CoreOf(12, 1'000, 70'000 * kStampSecond),
                                              CoreOf(13, 5'000, 70'000 * kStampSecond)};
  const HardwareStamp stamp{.vendor_ns = 70'000 * kStampSecond + 90'000,
                            .counter_ns = 5'400,
                            .device_core_idx = 13,
                            .sequence = 150};
  EXPECT_EQ(DecideStamp(stamp, cores),
            (HostStamp{70'000 * kStampSecond + 400, 5'000, 2'000, StampSource::kModel}));
}

TEST(DeviceStampTest, TheOnlyCoreNeedsNoName) {
  const std::vector<DeviceCoreClock> cores = {CoreOf(12, 1'000, 70'000 * kStampSecond)};
  // However far off the runtime's stamp is.
  const HardwareStamp stamp{.vendor_ns = 3, .counter_ns = 1'007, .sequence = 150};
  EXPECT_EQ(DecideStamp(stamp, cores).host_ns, 70'000 * kStampSecond + 7);
  EXPECT_EQ(DecideStamp(stamp, cores).source, StampSource::kModel);
}

TEST(DeviceStampTest, WithoutACounterOrAModelTheRuntimesStampStays) {
  const std::vector<DeviceCoreClock> cores = {CoreOf(12, 1'000, 70'000 * kStampSecond)};
  const HostStamp no_counter = DecideStamp({.vendor_ns = 77, .device_core_idx = 12}, cores);
  EXPECT_EQ(no_counter, (HostStamp{77, kNoBound, kNoBound, StampSource::kVendorNoCounter}));
  const HostStamp no_core =
      DecideStamp({.vendor_ns = 77, .counter_ns = 1'000, .device_core_idx = 99}, cores);
  EXPECT_EQ(no_core, (HostStamp{77, kNoBound, kNoBound, StampSource::kVendorNoModel}));
  const HostStamp no_cores = DecideStamp({.vendor_ns = 77, .counter_ns = 1'000}, {});
  EXPECT_EQ(no_cores.source, StampSource::kVendorNoModel);
}

TEST(DeviceStampTest, OfSeveralCoresTheOneIsMeantWhoseCounterStoodThere) {
  const std::vector<DeviceCoreClock> cores = {
      CoreOf(12, 1'000, 70'000 * kStampSecond),
      CoreOf(13, 500 * kStampSecond, 70'000 * kStampSecond)};
  const HardwareStamp stamp{.vendor_ns = 70'000 * kStampSecond + 40'000,
                            .counter_ns = 500 * kStampSecond + 30,
                            .sequence = 150};
  EXPECT_EQ(DecideStamp(stamp, cores),
            (HostStamp{70'000 * kStampSecond + 30, 5'000, 2'000, StampSource::kModel}));
}

TEST(DeviceStampTest, OfSeveralCoresThatCouldAllBeMeantNoneIs) {
  const std::vector<DeviceCoreClock> cores = {CoreOf(12, 1'000, 70'000 * kStampSecond),
                                              CoreOf(13, 2'000, 70'000 * kStampSecond)};
  const HardwareStamp stamp{
      .vendor_ns = 70'000 * kStampSecond, .counter_ns = 2'000, .sequence = 150};
  EXPECT_EQ(DecideStamp(stamp, cores).source, StampSource::kVendorCores);
  EXPECT_EQ(DecideStamp(stamp, cores).host_ns, 70'000 * kStampSecond);
}

TEST(DeviceStampTest, BetweenTwoRunsOfACounterItMustFitTheTimeBetween) {
  DeviceCoreClock core{.device_core_idx = 12, .model = {}};
  AddSegment(core.model, 0, 70'000 * kStampSecond, 100, 200);                  // to 70,001 s
  AddSegment(core.model, kStampSecond * 3 / 2, 70'002'500'000'000, 300, 400);  // one second later
  HardwareStamp stamp{.vendor_ns = 70'001'700'000'000,
                      .counter_ns = kStampSecond / 2,
                      .device_core_idx = 12,
                      .sequence = 250};
  // Before, it would be at 70,000.5 s, when its neighbours were not over yet.
  EXPECT_EQ(DecideStamp(stamp, {&core, 1}),
            (HostStamp{70'001'500'000'000, 205'000, 202'000, StampSource::kModel}));
}

TEST(DeviceStampTest, WhereItFitsBothRunsOfACounterTheRuntimesStampStays) {
  DeviceCoreClock core{.device_core_idx = 12, .model = {}};
  AddSegment(core.model, 0, 70'000 * kStampSecond, 100, 200);
  AddSegment(core.model, kStampSecond * 3 / 2, 70'002'500'000'000, 300, 400);
  const HardwareStamp stamp{.vendor_ns = 70'001'700'000'000,
                            .counter_ns = kStampSecond * 6 / 5,  // 70,001.2 s or 70,002.2 s
                            .device_core_idx = 12,
                            .sequence = 250};
  const HostStamp decided = DecideStamp(stamp, {&core, 1});
  EXPECT_EQ(decided.source, StampSource::kVendorSegments);
  EXPECT_EQ(decided.host_ns, 70'001'700'000'000u);
  EXPECT_GE(decided.bound_ns, 500'000'000u);
  EXPECT_LE(decided.bound_ns, 502'000'000u);
}

}  // namespace
}  // namespace neurontrace
