// SPDX-License-Identifier: Apache-2.0
// Events of collectives come in as a trace has them, with all that can be wrong; what comes out is
// looked at collective by collective.
#include "aggregator/clocks/collective_matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace neurontrace {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

CollectiveEvent Member(uint32_t clock, uint64_t sequence, uint64_t enter_ns, uint64_t exit_ns) {
  return {.clock = clock,
          .group = 5,
          .sequence = sequence,
          .member = clock,
          .enter_ns = enter_ns,
          .exit_ns = exit_ns};
}

// "5:1 0@100-200 1@110-210"
std::vector<std::string> Match(std::vector<CollectiveEvent> events) {
  std::vector<std::string> all;
  for (const std::span<const CollectiveEvent> members : MatchCollectives(events)) {
    std::string words =
        std::to_string(members[0].group) + ":" + std::to_string(members[0].sequence);
    for (const CollectiveEvent& member : members) {
      words += " " + std::to_string(member.clock) + "@" + std::to_string(member.enter_ns) + "-" +
               std::to_string(member.exit_ns);
    }
    all.push_back(words);
  }
  return all;
}

TEST(CollectiveMatcherTest, MatchesByNumberWhateverTheTimes) {
  EXPECT_THAT(Match({Member(0, 1, 100, 200), Member(0, 2, 300, 400), Member(1, 1, 9'000, 9'100),
                     Member(1, 2, 9'200, 9'300)}),
              ElementsAre("5:1 0@100-200 1@9000-9100", "5:2 0@300-400 1@9200-9300"));
}

TEST(CollectiveMatcherTest, KeepsCollectiveWithMissingMembers) {
  EXPECT_THAT(Match({Member(0, 1, 100, 200), Member(2, 1, 110, 210)}),
              ElementsAre("5:1 0@100-200 2@110-210"));
}

TEST(CollectiveMatcherTest, KeepsGroupsApart) {
  CollectiveEvent other = Member(1, 1, 110, 210);
  other.group = 6;
  EXPECT_THAT(Match({Member(0, 1, 100, 200), other}), IsEmpty());
}

TEST(CollectiveMatcherTest, SkipsCollectiveWithDuplicateMember) {
  EXPECT_THAT(Match({Member(0, 1, 100, 200), Member(0, 1, 300, 400), Member(1, 1, 110, 210),
                     Member(0, 2, 500, 600), Member(1, 2, 510, 610)}),
              ElementsAre("5:2 0@500-600 1@510-610"));
}

TEST(CollectiveMatcherTest, SkipsMemberWithInconsistentNumbers) {
  EXPECT_THAT(Match({Member(0, 1, 100, 200), Member(1, 1, 110, 210), Member(2, 1, 320, 420),
                     Member(0, 2, 300, 400), Member(1, 2, 310, 410), Member(2, 2, 120, 220)}),
              ElementsAre("5:1 0@100-200 1@110-210", "5:2 0@300-400 1@310-410"));
}

TEST(CollectiveMatcherTest, SkipsImpossibleTimes) {
  EXPECT_THAT(Match({Member(0, 1, 200, 100), Member(1, 1, 50, 60)}), IsEmpty());
  EXPECT_THAT(Match({Member(0, 1, 100, kCollectiveTimeMaxNs + 1), Member(1, 1, 50, 60)}),
              IsEmpty());
}

TEST(CollectiveMatcherTest, TheOrderOfEventsMakesNoDifference) {
  std::vector<CollectiveEvent> events;
  for (uint32_t clock = 0; clock < 5; ++clock) {
    for (uint64_t sequence = 0; sequence < 20; ++sequence) {
      events.push_back(Member(clock, sequence, 1'000 * sequence + clock, 1'000 * sequence + 500));
    }
  }
  const std::vector<std::string> expected = Match(events);
  ASSERT_EQ(expected.size(), 20u);
  std::mt19937 random(7);
  std::shuffle(events.begin(), events.end(), random);
  EXPECT_EQ(Match(events), expected);
}

TEST(CollectiveMatcherTest, FindsTheFirstToLeaveBeforeTheLastHasEntered) {
  std::vector<CollectiveEvent> members = {Member(0, 1, 100, 260), Member(1, 1, 300, 310),
                                          Member(2, 1, 120, 250)};
  members[1].bound_ns = 20;
  members[2].bound_ns = 29;
  const auto found = FindEarlyExit(members);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->entered.clock, 1u);
  EXPECT_EQ(found->left.clock, 2u);
  EXPECT_EQ(found->amount_ns, 50);
  EXPECT_FALSE(found->is_within_bounds());
  members[2].bound_ns = 30;
  EXPECT_TRUE(FindEarlyExit(members)->is_within_bounds());
  for (CollectiveEvent& member : members) member.exit_ns = 300;
  EXPECT_FALSE(FindEarlyExit(members));
}

TEST(CollectiveMatcherTest, ComparesNoTwoTimesOfOneClock) {
  std::vector<CollectiveEvent> members = {Member(0, 1, 100, 110), Member(0, 1, 300, 310),
                                          Member(1, 1, 90, 305)};
  members[1].member = 7;
  EXPECT_FALSE(FindEarlyExit(members));
  members[2].enter_ns = 200;  // before the other core of clock 0, after this one has left
  const auto found = FindEarlyExit(members);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->entered.clock, 1u);
  EXPECT_EQ(found->amount_ns, 90);
}

}  // namespace
}  // namespace neurontrace
