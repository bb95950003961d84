// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/suspension.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

CaptureId IdOf(char letter) {
  return *CaptureId::FromBytes(std::string(CaptureId::kBytes, letter));
}

TEST(Suspension, IsDescribedByTheOtherCapture) {
  const CaptureId other = IdOf('a');
  EXPECT_EQ(Describe(Suspension{other, 1, 2}), "capture " + other.ToString() + " had the worker");
  EXPECT_EQ(Describe(Suspension{{}, 1, 2}), "another capture had the worker");
}

TEST(Suspension, NeedsABeginAndAnEndThatIsNotBefore) {
  EXPECT_TRUE((Suspension{{}, 1, 1}).is_valid());
  EXPECT_TRUE((Suspension{{}, 1, UINT64_MAX}).is_valid());
  EXPECT_FALSE((Suspension{{}, 0, 1}).is_valid());
  EXPECT_FALSE((Suspension{{}, 2, 1}).is_valid());
  std::vector<Suspension> list;
  EXPECT_EQ(AddSuspension({{}, 2, 1}, 4, list), SuspensionAdded::kInvalid);
  EXPECT_EQ(AddSuspension({}, 4, list), SuspensionAdded::kInvalid);
  EXPECT_THAT(list, IsEmpty());
}

// A capture has a worker only once, so that a gap between two reports is a restart of the agent.
TEST(Suspension, ReportsOfOneCaptureAreOne) {
  const CaptureId a = IdOf('a');
  const CaptureId b = IdOf('b');
  std::vector<Suspension> list;
  EXPECT_EQ(AddSuspension({a, 100, 100}, 4, list), SuspensionAdded::kNew);
  EXPECT_EQ(AddSuspension({b, 950, 990}, 4, list), SuspensionAdded::kNew);
  EXPECT_EQ(AddSuspension({a, 700, 900}, 4, list), SuspensionAdded::kMerged);
  EXPECT_EQ(AddSuspension({a, 50, 60}, 4, list), SuspensionAdded::kMerged);
  EXPECT_THAT(list, ElementsAre(Suspension{a, 50, 900}, Suspension{b, 950, 990}));
}

TEST(Suspension, ReportsWithoutAnIdAreOneIfTheyOverlap) {
  std::vector<Suspension> list;
  EXPECT_EQ(AddSuspension({{}, 100, 200}, 4, list), SuspensionAdded::kNew);
  EXPECT_EQ(AddSuspension({{}, 300, 400}, 4, list), SuspensionAdded::kNew);
  EXPECT_THAT(list, SizeIs(2));
  EXPECT_EQ(AddSuspension({{}, 150, 300}, 4, list), SuspensionAdded::kMerged);
  EXPECT_THAT(list, ElementsAre(Suspension{{}, 100, 400}));
  EXPECT_EQ(AddSuspension({IdOf('a'), 150, 300}, 4, list), SuspensionAdded::kNew);
}

// The latest may still last, and its next report has to find it.
TEST(Suspension, BeyondTheLimitTheShortestIsRemovedButNotTheLatest) {
  std::vector<Suspension> list;
  AddSuspension({IdOf('a'), 100, 150}, 2, list);
  AddSuspension({IdOf('b'), 200, 220}, 2, list);
  AddSuspension({IdOf('c'), 300, 300}, 2, list);
  EXPECT_THAT(list, ElementsAre(Suspension{IdOf('a'), 100, 150}, Suspension{IdOf('c'), 300, 300}));
  EXPECT_EQ(AddSuspension({IdOf('c'), 300, 380}, 2, list), SuspensionAdded::kMerged);
  AddSuspension({IdOf('d'), 400, UINT64_MAX}, 2, list);
  EXPECT_THAT(list,
              ElementsAre(Suspension{IdOf('c'), 300, 380}, Suspension{IdOf('d'), 400, UINT64_MAX}));
}

TEST(Suspension, IsShownAmongLossesWithoutEvents) {
  const Loss row = ShownAmongLosses({IdOf('a'), 5, 9});
  EXPECT_EQ(row.events, 0u);
  EXPECT_FALSE(row.events_unknown);
  EXPECT_EQ(row.first_timestamp_ns, 5u);
  EXPECT_EQ(row.last_timestamp_ns, 9u);
  EXPECT_EQ(row.detail, Describe(Suspension{IdOf('a'), 5, 9}));
}

}  // namespace
}  // namespace neurontrace
