// SPDX-License-Identifier: Apache-2.0
// What becomes of a model when it is shifted, looked at in times rather than in knots.
#include "aggregator/align/causal_correction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "aggregator/align/clock_reading.h"
#include "base/time_units.h"

namespace neurontrace {
namespace {

constexpr uint64_t kBegin = 5'000'000 * kNsPerSecond;

// A clock that is 20 ppm slow, with knots every 5 s from kBegin + 1 s to kBegin + 21 s.
ClockSegment Segment() {
  ClockSegment segment;
  for (uint64_t t = 1; t <= 21; t += 5) {
    segment.knots.push_back({.x_ns = 77 * kNsPerSecond + t * (kNsPerSecond - 20'000),
                             .y_ns = kBegin + t * kNsPerSecond,
                             .bound_ns = 30'000,
                             .likely_bound_ns = 1'000});
  }
  return segment;
}

ClockModel Model() {
  return {.algorithm_version = 3, .segments = {Segment()}, .findings = {}, .evidence_used = 8};
}

// Epochs of 1 s around the model; of clock 1 of two.
CausalCorrections ZigZag() {
  CausalCorrections corrections({.begin_ns = kBegin, .epoch_ns = kNsPerSecond, .epochs = 25}, 2);
  for (size_t knot = 0; knot <= 25; ++knot) {
    corrections.At(knot, 1).shift_ns = static_cast<int64_t>(knot * knot * 7 % 50) * 100 - 2'500;
  }
  return corrections;
}

TEST(CausalCorrectionsTest, BendLinearlyFromKnotToKnotAndStayOutside) {
  CausalCorrections corrections({.begin_ns = 1'000, .epoch_ns = 100, .epochs = 2}, 1);
  corrections.At(0, 0).shift_ns = 10;
  corrections.At(1, 0).shift_ns = -10;
  corrections.At(2, 0).shift_ns = 5;
  EXPECT_EQ(corrections.ShiftAt(0, 0), 10);
  EXPECT_EQ(corrections.ShiftAt(0, 1'000), 10);
  EXPECT_EQ(corrections.ShiftAt(0, 1'050), 0);
  EXPECT_EQ(corrections.ShiftAt(0, 1'051), -1);  // rounds down
  EXPECT_EQ(corrections.ShiftAt(0, 1'100), -10);
  EXPECT_EQ(corrections.ShiftAt(0, 1'199), 4);
  EXPECT_EQ(corrections.ShiftAt(0, 9'999), 5);
  EXPECT_EQ(corrections.Corrected(0, 1'100), 1'090u);
  EXPECT_EQ(CausalCorrections().ShiftAt(3, 55), 0);
}

TEST(ApplyCorrectionsTest, AModelThatNothingConcernsStaysAsItIs) {
  EXPECT_EQ(ApplyCorrections(Model(), ZigZag(), 0), Model());
  EXPECT_EQ(ApplyCorrections(Model(), CausalCorrections(), 1), Model());
}

TEST(ApplyCorrectionsTest, TheCurveIsShiftedEverywhereAndNeverRunsBack) {
  const ClockModel model = Model();
  const CausalCorrections corrections = ZigZag();
  const ClockModel shifted = ApplyCorrections(model, corrections, 1);
  EXPECT_EQ(shifted.evidence_used, model.evidence_used);
  uint64_t before = 0;
  // Also before the first and behind the last knot of the model.
  for (uint64_t x = 77 * kNsPerSecond + 1'000; x < 102 * kNsPerSecond; x += 3'333'333) {
    const ClockEstimate old = EvaluateSegment(model.segments[0], x);
    const ClockEstimate now = EvaluateSegment(shifted.segments[0], x);
    const auto expected = static_cast<int64_t>(corrections.Corrected(1, old.y_ns));
    ASSERT_LE(std::abs(static_cast<int64_t>(now.y_ns) - expected), 3) << x;
    ASSERT_GT(now.y_ns, before);
    before = now.y_ns;
    // Nothing more is known, so the old bound and the shift add up.
    const auto moved = static_cast<uint64_t>(std::abs(corrections.ShiftAt(1, old.y_ns)));
    ASSERT_GE(now.bound_ns, old.bound_ns + moved) << x;
    // Beyond the model's ends a bound grows by 200 ppm, and that of a knot's far end holds.
    const bool is_beyond =
        x < model.segments[0].knots.front().x_ns || x > model.segments[0].knots.back().x_ns;
    ASSERT_LE(now.bound_ns, old.bound_ns + (is_beyond ? 205'000 : 5'000)) << x;
    ASSERT_GE(now.likely_bound_ns, old.likely_bound_ns + moved) << x;
  }
}

TEST(ApplyCorrectionsTest, AnEpochsBoundHoldsInTheWholeOfIt) {
  CausalCorrections corrections({.begin_ns = kBegin, .epoch_ns = kNsPerSecond, .epochs = 25}, 1);
  for (size_t epoch = 0; epoch < 25; ++epoch) {
    corrections.At(epoch, 0).bound_ns = 10'000 + epoch * epoch % 7 * 1'000;
    corrections.At(epoch, 0).likely_bound_ns = 20'000;
  }
  const ClockModel model = Model();
  const ClockModel shifted = ApplyCorrections(model, corrections, 0);
  for (uint64_t x = 79 * kNsPerSecond; x < 97 * kNsPerSecond; x += 33'333'333) {
    const ClockEstimate now = EvaluateSegment(shifted.segments[0], x);
    const size_t epoch = corrections.grid().EpochOf(now.y_ns);
    ASSERT_GE(now.bound_ns, corrections.At(epoch, 0).bound_ns) << epoch;
    ASSERT_LE(now.bound_ns, 16'000u);
    ASSERT_EQ(now.likely_bound_ns, 1'000u);  // was better already
    ASSERT_EQ(now.y_ns, EvaluateSegment(model.segments[0], x).y_ns);
  }
}

TEST(ApplyCorrectionsTest, EachSegmentIsAClockOfItsOwn) {
  ClockModel model = Model();
  model.segments.push_back(Segment());
  for (ClockKnot& knot : model.segments[1].knots) {
    knot.x_ns += 100 * kNsPerSecond;
    knot.y_ns += 100 * kNsPerSecond;
  }
  const ClockModel shifted = ApplyCorrections(model, ZigZag(), 0);
  EXPECT_EQ(shifted.segments[0], model.segments[0]);
  EXPECT_NE(shifted.segments[1], model.segments[1]);
}

}  // namespace
}  // namespace neurontrace
