// SPDX-License-Identifier: Apache-2.0
// Goal: the ring and its execution decide in which segment an event is read. Method: segments whose
// counters overlap, and whose hosts' times do not.
#include "aggregator/align/device/device_clock.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

constexpr uint64_t kCounterSecond = 1'000'000'000;

// Three runs of a counter from 1 s to 2 s, at 100, 200 and 300 s of the host.
DeviceClockModel ThreeRuns() {
  DeviceClockModel model;
  for (uint64_t i = 0; i < 3; ++i) {
    const uint64_t y = (i + 1) * 100 * kCounterSecond;
    model.clock.segments.push_back(
        {SegmentCause::kCounterReset,
         {{kCounterSecond, y, 1'000, 500}, {2 * kCounterSecond, y + kCounterSecond, 1'000, 500}}});
    model.ranges.push_back({.first_sequence = i * 1'000 + 10,
                            .last_sequence = i * 1'000 + 500,
                            .first_exec_id = i * 50 + 1,
                            .last_exec_id = i * 50 + 40,
                            .x_begin_ns = kCounterSecond,
                            .x_end_ns = 2 * kCounterSecond});
  }
  return model;
}

uint64_t SecondOf(const DeviceTime& time) {
  const ClockReading reading = ReadDeviceClock(ThreeRuns(), time);
  return reading.is_ambiguous ? 0 : reading.estimate.y_ns / kCounterSecond;
}

TEST(DeviceClockTest, RingSelectsSegment) {
  EXPECT_EQ(SecondOf({kCounterSecond, 0}), 100u) << "before all segments";
  EXPECT_EQ(SecondOf({kCounterSecond, 10}), 100u);
  EXPECT_EQ(SecondOf({kCounterSecond, 500}), 100u);
  EXPECT_EQ(SecondOf({kCounterSecond, 1'010}), 200u);
  EXPECT_EQ(SecondOf({kCounterSecond, 2'500}), 300u);
  EXPECT_EQ(SecondOf({kCounterSecond, 9'999}), 300u) << "after all segments";
}

TEST(DeviceClockTest, ExecutionSelectsBetweenSegments) {
  EXPECT_EQ(SecondOf({kCounterSecond + 5, 700, 40}), 100u);
  EXPECT_EQ(SecondOf({kCounterSecond + 5, 700, 51}), 200u);
  // Written down late: the next segment has begun, or the last one.
  EXPECT_EQ(SecondOf({kCounterSecond + 5, 1'012, 40}), 100u);
  EXPECT_EQ(SecondOf({kCounterSecond + 5, 2'700, 90}), 200u);
}

TEST(DeviceClockTest, AmbiguousTimesAreWithinBothBounds) {
  // Of no execution: after the end of the first run, or before the begin of the second.
  const ClockReading reading = ReadDeviceClock(ThreeRuns(), {2 * kCounterSecond, 700});
  EXPECT_EQ(reading.estimate.y_ns / kCounterSecond, 101u)
      << "after the first is possible, 201 s is not";
  EXPECT_FALSE(reading.is_ambiguous);
  DeviceClockModel model = ThreeRuns();
  model.ranges[1].x_begin_ns = 2 * kCounterSecond;  // now it is
  const ClockReading either = ReadDeviceClock(model, {2 * kCounterSecond, 700});
  EXPECT_TRUE(either.is_ambiguous);
  EXPECT_EQ(either.estimate.y_ns, 151 * kCounterSecond);
  EXPECT_EQ(either.estimate.bound_ns, 50 * kCounterSecond + 1'000);
  EXPECT_EQ(either.estimate.likely_bound_ns, 50 * kCounterSecond + 500);
}

}  // namespace
}  // namespace neurontrace
