// SPDX-License-Identifier: Apache-2.0
// Goal: each moment of a core is in one segment, sequences have the shortest period, and the least
// times of operations are those of the right executions. Method: a few events by hand.
#include "aggregator/insight/segment_finder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "aggregator/insight/fleet_finder.h"

namespace neurontrace {
namespace {

TEST(CoreOperation, LeastTimesAreOfBlocks) {
  CoreOperation operation;
  for (int i = 0; i < 16; ++i) operation.Add(static_cast<float>(100 + i));
  for (int i = 0; i < 16; ++i) operation.Add(static_cast<float>(300 - i));
  EXPECT_EQ(operation.recent_least(), 285);
  EXPECT_EQ(operation.earlier_least, 0);  // the first block was the last full one until now
  for (int i = 0; i < 3; ++i) operation.Add(500);
  EXPECT_EQ(operation.recent_least(), 285);  // three are too few
  EXPECT_EQ(operation.earlier_least, 100);
  operation.Add(400);
  EXPECT_EQ(operation.recent_least(), 400);
}

TEST(FindPeriod, IsTheShortestSequenceThatRepeats) {
  const auto period = [](std::vector<uint32_t> sequence) { return FindPeriod(sequence); };
  EXPECT_EQ(period({1, 1, 1, 1}), 1u);
  EXPECT_EQ(period({1, 2, 1, 2, 1, 2}), 2u);
  EXPECT_EQ(period({1, 1, 2, 1, 1, 2, 1, 1}), 3u);
  EXPECT_EQ(period({1, 2, 3, 4}), 0u);
  EXPECT_EQ(period({}), 0u);
  std::vector<uint32_t> long_runs(96, 1);
  std::fill(long_runs.begin() + 48, long_runs.end(), 2);
  EXPECT_EQ(FindPeriod(long_runs), 1u);
}

TEST(IntervalCover, CountsOverlapsOnce) {
  IntervalCover cover;
  cover.Add(10, 20);
  cover.Add(15, 25);
  cover.Add(30, 40);
  EXPECT_EQ(cover.LengthFrom(0), 25u);
  EXPECT_EQ(cover.LengthFrom(35), 5u);
  cover.Add(5, 50);  // around all of them
  EXPECT_EQ(cover.LengthFrom(0), 45u);
  for (uint64_t i = 0; i < 100; ++i) cover.Add(100 + 10 * i, 105 + 10 * i);
  EXPECT_EQ(cover.LengthFrom(0), 545u);
}

TEST(SegmentFinder, DividesEachMomentOnce) {
  SegmentFinder finder;
  const auto take = [&](InsightClass kind, uint64_t start, uint64_t end, uint64_t exec_id = 0) {
    finder.Take({.kind = kind, .start_ns = start, .end_ns = end, .exec_id = exec_id, .model = 1});
  };
  take(InsightClass::kRun, 1000, 2000, 1);
  take(InsightClass::kPost, 2010, 2030, 1);
  take(InsightClass::kExecute, 900, 2050);
  take(InsightClass::kTransferIo, 2060, 2160);
  take(InsightClass::kMemory, 2170, 2190);
  take(InsightClass::kPrepare, 2300, 2360, 2);
  take(InsightClass::kHostBarrier, 2370, 2450, 2);
  take(InsightClass::kDeviceBarrier, 2500, 2600, 2);
  take(InsightClass::kCollective, 2700, 2900, 2);
  take(InsightClass::kRun, 2400, 3000, 2);  // one physical core …
  take(InsightClass::kRun, 2410, 3010, 2);  // … and the other
  take(InsightClass::kExecute, 2250, 3100);
  ASSERT_EQ(finder.history().kept(), 1u);
  const CoreExecution& execution = finder.history().latest(0);
  EXPECT_EQ(execution.exec_id, 2u);
  EXPECT_EQ(execution.end_ns, 3010u);
  EXPECT_EQ(execution.post, 20);
  EXPECT_EQ(execution.pre, 60);
  EXPECT_EQ(execution.submit, 10 + 20 + 50 + 10);  // the rest of both calls
  EXPECT_EQ(execution.gap, 200);
  EXPECT_EQ(execution.io, 100);
  EXPECT_EQ(execution.memory, 20);
  EXPECT_EQ(execution.met, 30 + 100 + 200);  // the host's barrier until the device ran
  EXPECT_EQ(execution.device, 610 - 300);
  EXPECT_EQ(execution.length(), 1010);
}

TEST(SegmentFinder, CallsAreExecutionsWhereNoDeviceWasRecorded) {
  SegmentFinder finder;
  for (uint64_t i = 1; i <= 3; ++i) {
    finder.Take({.kind = InsightClass::kPrepare,
                 .start_ns = i * 1000 + 10,
                 .end_ns = i * 1000 + 60,
                 .exec_id = i,
                 .model = 1});
    finder.Take({.kind = InsightClass::kExecute, .start_ns = i * 1000, .end_ns = i * 1000 + 400});
  }
  ASSERT_EQ(finder.history().kept(), 2u);
  EXPECT_EQ(finder.history().latest(0).exec_id, 3u);
  EXPECT_EQ(finder.history().latest(0).pre, 50);
  EXPECT_EQ(finder.history().latest(0).submit, 350);
  EXPECT_EQ(finder.history().latest(0).gap, 600);
}

}  // namespace
}  // namespace neurontrace
