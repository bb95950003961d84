// SPDX-License-Identifier: Apache-2.0
// Goal: what a look at every step finds, in time that grows no faster than the evidence. Method:
// comparison with that look; sizes at which it would take minutes.

#include <gtest/gtest.h>

#include <algorithm>

#include "aggregator/align/utc/snapshot_chain.h"
#include "lib/base/random.h"

namespace neurontrace {
namespace {

std::optional<ReportedClockSteps::Ends> BySearch(std::span<const ClockEvent> events,
                                                 uint64_t begin_ns, uint64_t end_ns) {
  std::optional<ReportedClockSteps::Ends> found;
  for (const ClockEvent& event : events) {
    if (event.kind != ClockEventKind::kRealtimeStep || event.raw_begin_ns >= end_ns ||
        event.raw_end_ns <= begin_ns) {
      continue;
    }
    found = {found ? found->first : &event, &event};
  }
  return found;
}

TEST(ReportedClockStepsTest, FindsFirstAndLastOfInterval) {
  SeededRandom random(1);
  for (size_t count = 0; count < 70; ++count) {
    std::vector<ClockEvent> events;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t begin = random.Next64() % 200;
      // Mostly short ones; long ones, and such as end before they begin, come from liars alone.
      const uint64_t end =
          random.Next64() % 5 == 0 ? random.Next64() % 300 : begin + random.Next64() % 10;
      const bool is_step = random.Next64() % 4 != 0;
      events.push_back(
          {is_step ? ClockEventKind::kRealtimeStep : ClockEventKind::kPause, begin, end, 0});
    }
    std::ranges::stable_sort(events, {}, &ClockEvent::raw_begin_ns);
    const ReportedClockSteps told(events);
    for (uint64_t begin = 0; begin < 320; ++begin) {
      for (const uint64_t length : {0, 1, 7, 100}) {
        ASSERT_EQ(told.Between(begin, begin + length), BySearch(events, begin, begin + length))
            << count << " events, " << begin << " + " << length;
      }
    }
  }
}

TEST(ReportedClockStepsTest, ManySnapshotsAndManyStepsAreNoSquare) {
  constexpr uint64_t kMany = 500'000;
  std::vector<ClockEvent> events;
  std::vector<ClockSnapshot> snapshots;
  for (uint64_t i = 0; i < kMany; ++i) {
    // All before the first snapshot, and none of them ends where the one before does.
    events.push_back({ClockEventKind::kRealtimeStep, i, 2 * kMany - i, 0});
    const uint64_t raw = 1'000'000'000 + i * 1'000'000;
    snapshots.push_back({.raw_begin_ns = raw, .raw_end_ns = raw + 100, .realtime_ns = raw + 50});
  }
  EXPECT_EQ(ChainsOf(snapshots, events).size(), 1u);
}

}  // namespace
}  // namespace neurontrace
