// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/capture/snapshot_window.h"

#include <gtest/gtest.h>

#include "agent/source/neuron/capture/held_rings.h"

namespace neurontrace {
namespace {

constexpr uint64_t kBegun = 1'000;
constexpr uint64_t kCut = 9'000;

TEST(SnapshotWindowTest, ContainsWhatLiesBeforeTheCutAndNotTooFar) {
  HeldRings rings;
  const SnapshotWindow window(rings, kCut, 500);
  EXPECT_TRUE(window.Contains(kCut));
  EXPECT_FALSE(window.Contains(kCut + 1));
  EXPECT_TRUE(window.Contains(kCut - 500));
  EXPECT_FALSE(window.Contains(kCut - 501));
  EXPECT_TRUE(SnapshotWindow(rings, kCut, 0).Contains(1));
  EXPECT_TRUE(SnapshotWindow(rings, kCut, kCut + 1).Contains(1));
}

TEST(SnapshotWindowTest, ReachesBackToTheYoungestCoresFirstEvent) {
  HeldRings rings;
  rings.BeginTrace(kBegun);
  SnapshotWindow window(rings, kCut, 0);
  window.HandleDocument(0, 500, 4'000, 600, 9'100);  // its ring has overwritten 0 to 499
  window.HandleDocument(0, 600, 5'000, 700, 9'101);
  EXPECT_EQ(window.reaches_back_ns(), kCut - 4'000);
  window.HandleDocument(1, 900, 6'000, 910, 9'102);
  EXPECT_EQ(window.reaches_back_ns(), kCut - 6'000);
}

TEST(SnapshotWindowTest, ACoreThatWasSilentTakesNothingFromIt) {
  HeldRings rings;
  rings.BeginTrace(kBegun);
  SnapshotWindow window(rings, kCut, 0);
  EXPECT_EQ(window.reaches_back_ns(), kCut - kBegun) << "rings that hold nothing are whole";
  window.HandleDocument(0, 1, 8'900, 5, 9'100);  // the first event of its trace came late
  EXPECT_EQ(window.reaches_back_ns(), kCut - kBegun);
  EXPECT_EQ(SnapshotWindow(rings, kCut, 3'000).reaches_back_ns(), 3'000u);
}

TEST(SnapshotWindowTest, ExcludesEventsOfEarlierSnapshot) {
  HeldRings rings;
  rings.BeginTrace(kBegun);
  SnapshotWindow first(rings, 5'000, 0);
  first.HandleDocument(0, 0, 1'100, 40, 5'005);
  SnapshotWindow second(rings, kCut, 0);
  second.HandleDocument(0, 40, 7'000, 50, 9'100);
  EXPECT_EQ(second.reaches_back_ns(), kCut - 5'005);
  SnapshotWindow third(rings, kCut, 0);
  third.HandleDocument(0, 70, 8'000, 80, 9'200);
  EXPECT_EQ(third.reaches_back_ns(), kCut - 8'000) << "50 to 69 were overwritten";
  rings.BeginTrace(8'500);
  SnapshotWindow restarted(rings, kCut, 0);
  restarted.HandleDocument(0, 0, 8'600, 3, 9'300);
  EXPECT_EQ(restarted.reaches_back_ns(), 500u);
}

TEST(SnapshotWindowTest, WithoutTheTracesBeginningTheFirstEventCounts) {
  HeldRings rings;
  SnapshotWindow window(rings, kCut, 0);
  EXPECT_EQ(window.reaches_back_ns(), 0u);
  window.HandleDocument(0, 0, 8'000, 3, 9'300);
  EXPECT_EQ(window.reaches_back_ns(), 1'000u);
  window.HandleDocument(5'000, 0, 8'500, 3, 9'300);  // no core
  EXPECT_EQ(window.reaches_back_ns(), 1'000u);
}

}  // namespace
}  // namespace neurontrace
