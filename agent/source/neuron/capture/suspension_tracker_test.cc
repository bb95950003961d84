// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/capture/suspension_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kInterval = SuspensionTracker::kReportIntervalNs;

class SuspensionTrackerTest : public ::testing::Test {
 protected:
  const CaptureId a_ = *CaptureId::FromBytes(std::string(CaptureId::kBytes, 'a'));
  const CaptureId b_ = *CaptureId::FromBytes(std::string(CaptureId::kBytes, 'b'));
  SuspensionTracker tracker_;
};

TEST_F(SuspensionTrackerTest, ReportsNothingOfACaptureThatRecords) {
  EXPECT_EQ(tracker_.TraceStarted(kSecond), std::nullopt);
  EXPECT_THAT(tracker_.TakeDue(100 * kSecond), IsEmpty());
  EXPECT_THAT(tracker_.TakeDue(100 * kSecond, true), IsEmpty());
}

// The tap's times replace those of the commands.
TEST_F(SuspensionTrackerTest, ReportsTheBeginAtOnceAndTheWholeTimeAgain) {
  tracker_.Suspend(a_, kSecond);
  EXPECT_EQ(tracker_.TraceStopped(kSecond + 5), (Suspension{a_, kSecond + 5, kSecond + 5}));
  EXPECT_THAT(tracker_.TakeDue(kSecond + kInterval), IsEmpty());
  const uint64_t later_ns = kSecond + 5 + kInterval;
  EXPECT_THAT(tracker_.TakeDue(later_ns), ElementsAre(Suspension{a_, kSecond + 5, later_ns}));
  EXPECT_THAT(tracker_.TakeDue(later_ns + 1), IsEmpty());
  tracker_.Suspend(a_, later_ns + 2);
  EXPECT_EQ(tracker_.TraceStarted(later_ns + 9), (Suspension{a_, kSecond + 5, later_ns + 9}));
  EXPECT_THAT(tracker_.TakeDue(later_ns + kSecond, true), IsEmpty());
}

TEST_F(SuspensionTrackerTest, ReportsTheRestAtTheEnd) {
  tracker_.Suspend(a_, kSecond);
  EXPECT_THAT(tracker_.TakeDue(kSecond + 1, true),
              ElementsAre(Suspension{a_, kSecond, kSecond + 1}));
}

TEST_F(SuspensionTrackerTest, OneCaptureAfterTheOtherHasATimeOfItsOwn) {
  tracker_.Suspend(a_, kSecond);
  tracker_.Suspend(b_, 2 * kSecond);
  EXPECT_THAT(tracker_.TakeDue(2 * kSecond), ElementsAre(Suspension{a_, kSecond, 2 * kSecond}));
  EXPECT_EQ(tracker_.TraceStarted(3 * kSecond), (Suspension{b_, 2 * kSecond, 3 * kSecond}));
}

// An agent that was restarted sees the stop in the ring before it knows the other capture.
TEST_F(SuspensionTrackerTest, AStopOfUnknownCauseIsGivenToTheCaptureThatBecomesKnown) {
  EXPECT_EQ(tracker_.TraceStopped(kSecond), (Suspension{{}, kSecond, kSecond}));
  tracker_.Suspend(a_, 5 * kSecond);
  EXPECT_EQ(tracker_.TraceStarted(6 * kSecond), (Suspension{a_, kSecond, 6 * kSecond}));
}

// The clock was stepped back.
TEST_F(SuspensionTrackerTest, ATimeThatWouldEndBeforeItsBeginIsNotReported) {
  tracker_.Suspend(a_, 10 * kSecond);
  EXPECT_THAT(tracker_.TakeDue(9 * kSecond, true), IsEmpty());
  tracker_.Suspend(b_, 8 * kSecond);
  EXPECT_THAT(tracker_.TakeDue(8 * kSecond, true), IsEmpty());
  EXPECT_EQ(tracker_.TraceStarted(7 * kSecond), std::nullopt);
}

}  // namespace
}  // namespace neurontrace
