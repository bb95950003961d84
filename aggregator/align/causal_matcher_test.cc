// SPDX-License-Identifier: Apache-2.0
// Events of collectives and messages come in as a trace has them, with all that can be wrong; what
// comes out is looked at instance by instance.
#include "aggregator/align/causal_matcher.h"

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

CausalEvent Member(uint32_t clock, uint64_t sequence, uint64_t enter_ns, uint64_t exit_ns) {
  return {.clock = clock,
          .group = 5,
          .sequence = sequence,
          .member = clock,
          .enter_ns = enter_ns,
          .exit_ns = exit_ns};
}

CausalEvent Rooted(CausalClass kind, CausalRole role, uint32_t clock) {
  CausalEvent event = Member(clock, 1, 100 + clock, 200 + clock);
  event.kind = kind;
  event.role = role;
  return event;
}

// "5:1 0@100 1@110 -> 0@200 1@210"
std::vector<std::string> Words(const CausalInstances& instances) {
  std::vector<std::string> all;
  for (size_t i = 0; i < instances.size(); ++i) {
    const CausalInstances::Entry& entry = instances[i];
    std::string words =
        std::to_string(entry.instance.group) + ":" + std::to_string(entry.instance.sequence);
    const auto add = [&words](const CausalStamp& stamp) {
      words += " " + std::to_string(stamp.clock) + "@" + std::to_string(stamp.reference_ns);
    };
    std::ranges::for_each(instances.Causes(entry), add);
    words += " ->";
    std::ranges::for_each(instances.Effects(entry), add);
    all.push_back(words);
  }
  return all;
}

TEST(CausalMatcherTest, MatchesByNumberWhateverTheTimes) {
  const CausalMatches matches =
      MatchCausalEvents(std::vector{Member(0, 1, 100, 200), Member(0, 2, 300, 400),
                                    Member(1, 1, 9'000, 9'100), Member(1, 2, 9'200, 9'300)});
  EXPECT_THAT(Words(matches.instances),
              ElementsAre("5:1 0@100 1@9000 -> 0@200 1@9100", "5:2 0@300 1@9200 -> 0@400 1@9300"));
  EXPECT_EQ(matches.instances_left_out, 0u);
}

TEST(CausalMatcherTest, KeepsWhatIsThereOfAnInstanceWithMissingMembers) {
  const CausalMatches matches =
      MatchCausalEvents(std::vector{Member(0, 1, 100, 200), Member(2, 1, 110, 210)});
  EXPECT_THAT(Words(matches.instances), ElementsAre("5:1 0@100 2@110 -> 0@200 2@210"));
}

TEST(CausalMatcherTest, KeepsGroupsApart) {
  CausalEvent other = Member(1, 1, 110, 210);
  other.group = 6;
  const CausalMatches matches = MatchCausalEvents(std::vector{Member(0, 1, 100, 200), other});
  EXPECT_THAT(Words(matches.instances), IsEmpty());
  EXPECT_EQ(matches.alone, 2u);
  EXPECT_EQ(matches.instances_left_out, 2u);
}

TEST(CausalMatcherTest, TakesRootsForWhatTheyAre) {
  const auto match = [](CausalClass kind, CausalRole root, CausalRole member) {
    return Words(MatchCausalEvents(std::vector{Rooted(kind, root, 0), Rooted(kind, member, 1),
                                               Rooted(kind, member, 2)})
                     .instances);
  };
  EXPECT_THAT(match(CausalClass::kBroadcast, CausalRole::kCause, CausalRole::kEffect),
              ElementsAre("5:1 0@100 -> 1@201 2@202"));
  EXPECT_THAT(match(CausalClass::kReduce, CausalRole::kEffect, CausalRole::kCause),
              ElementsAre("5:1 1@101 2@102 -> 0@200"));
  EXPECT_THAT(match(CausalClass::kFlow, CausalRole::kCause, CausalRole::kEffect),
              ElementsAre("5:1 0@100 -> 1@201 2@202"));
  EXPECT_THAT(match(CausalClass::kBroadcast, CausalRole::kEffect, CausalRole::kCause), IsEmpty());
}

TEST(CausalMatcherTest, LeavesOutAnInstanceInWhichAMemberStandsTwice) {
  const CausalMatches matches = MatchCausalEvents(
      std::vector{Member(0, 1, 100, 200), Member(0, 1, 300, 400), Member(1, 1, 110, 210),
                  Member(0, 2, 500, 600), Member(1, 2, 510, 610)});
  EXPECT_THAT(Words(matches.instances), ElementsAre("5:2 0@500 1@510 -> 0@600 1@610"));
  EXPECT_EQ(matches.repeated, 3u);
}

TEST(CausalMatcherTest, LeavesOutAMemberWhoseNumbersDoNotGoWithItsTime) {
  const CausalMatches matches = MatchCausalEvents(
      std::vector{Member(0, 1, 100, 200), Member(1, 1, 110, 210), Member(2, 1, 320, 420),
                  Member(0, 2, 300, 400), Member(1, 2, 310, 410), Member(2, 2, 120, 220)});
  EXPECT_THAT(Words(matches.instances),
              ElementsAre("5:1 0@100 1@110 -> 0@200 1@210", "5:2 0@300 1@310 -> 0@400 1@410"));
  EXPECT_EQ(matches.unordered, 2u);
}

TEST(CausalMatcherTest, LeavesOutWhatContradictsItself) {
  CausalEvent odd = Member(1, 2, 110, 210);
  odd.kind = CausalClass::kReduce;
  odd.role = CausalRole::kCause;
  const CausalMatches matches = MatchCausalEvents(
      std::vector{Member(0, 1, 200, 100), Member(1, 1, 50, 60), Member(0, 2, 100, 200), odd});
  EXPECT_THAT(Words(matches.instances), IsEmpty());
  EXPECT_EQ(matches.reversed, 1u);
  EXPECT_EQ(matches.alone, 1u);
  EXPECT_EQ(matches.mixed, 2u);
}

TEST(CausalMatcherTest, TheOrderOfEventsMakesNoDifference) {
  std::vector<CausalEvent> events;
  for (uint32_t clock = 0; clock < 5; ++clock) {
    for (uint64_t sequence = 0; sequence < 20; ++sequence) {
      events.push_back(Member(clock, sequence, 1'000 * sequence + clock, 1'000 * sequence + 500));
    }
  }
  const std::vector<std::string> expected = Words(MatchCausalEvents(events).instances);
  ASSERT_EQ(expected.size(), 20u);
  std::mt19937 random(7);
  std::shuffle(events.begin(), events.end(), random);
  EXPECT_EQ(Words(MatchCausalEvents(events).instances), expected);
}

}  // namespace
}  // namespace neurontrace
