// SPDX-License-Identifier: Apache-2.0
// Goal: parts of one collective are joined over cores, parts of several never are, and what is said
// of who came last carries the clocks' bound. Method: hand-made events of several ranks.
#include "aggregator/derive/collectives.h"

#include <gmock/gmock.h>

#include <optional>

#include "aggregator/align/core/clock_maps.h"
#include "aggregator/derive/arrivals.h"
#include "aggregator/derive/derive_fixture.h"
#include "aggregator/timeline/model_names.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;

class CollectivesTest : public DeriveTest {
 protected:
  std::vector<Collective> Find(CommunicatorFacts facts = {}, TimelineOptions options = {}) {
    std::vector<Collective> done;
    std::optional<CollectiveFinder> finder;
    Read(
        [&](const TimelineReader& reader) {
          finder.emplace(reader.streams(), fields_, std::move(facts), limits_);
        },
        [&](const TimelineBatch& batch) { finder->Take(batch, done); }, std::move(options));
    finder->Finish(done);
    counts_ = finder->counts();
    absences_.assign(finder->absences().begin(), finder->absences().end());
    communicators_.assign(finder->communicators().begin(), finder->communicators().end());
    return done;
  }
  // Ranks 0 to count - 1 of a job, each on an instance of its own.
  void AddRanks(uint32_t count, const std::string& prefix = "i-") {
    for (uint32_t rank = 0; rank < count; ++rank) {
      AddStream(Core(prefix + std::to_string(rank), 1, 0), Rank(rank, count));
    }
  }
  // Clocks of these instances, all right to this bound.
  void BoundClocks(uint32_t count, uint64_t bound_ns) {
    for (uint32_t rank = 0; rank < count; ++rank) {
      clocks_.Set(Core("i-" + std::to_string(rank), 1, 0).worker, ClockDomain::kHostRealtime,
                  BoundedClock(bound_ns));
    }
  }
  static std::vector<uint32_t> Streams(const Collective& collective) {
    std::vector<uint32_t> streams;
    for (const CollectiveMember& member : collective.members) streams.push_back(member.stream);
    return streams;
  }

  ShapeFieldTable fields_;
  ClockMaps clocks_;
  CollectiveFinder::Limits limits_;
  CollectiveCounts counts_;
  std::vector<uint64_t> absences_;
  std::vector<Communicator> communicators_;
};

TEST_F(CollectivesTest, JoinsRanksByExecutionAndOperation) {
  AddRanks(3);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    Collects(rank, Operation(9, 1, rank), kBase + 100 * (3 - rank), kBase + 1000);
    Collects(rank, Operation(9, 2, rank), kBase + 2000 + rank, kBase + 3000);
  }
  const auto done = Find();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_THAT(Streams(done[0]), ElementsAre(2, 1, 0));
  EXPECT_EQ(done[0].exec_id, 9u);
  EXPECT_EQ(done[0].op_id, 1u);
  EXPECT_EQ(done[0].algorithm, "ring");
  EXPECT_EQ(done[0].arrival_skew_ns(), 200u);
  EXPECT_EQ(done[0].lateness_ns(), 100u);
  EXPECT_EQ(done[0].skew_bound_ns(), std::nullopt) << "the clocks are unknown";
  EXPECT_FALSE(done[0].is_last_known());
  EXPECT_THAT(Streams(done[1]), ElementsAre(0, 1, 2));
  ASSERT_EQ(communicators_.size(), 1u);
  EXPECT_EQ(communicators_[0].world_size, 3);
  EXPECT_EQ(communicators_[0].group, std::nullopt) << "the gid is the rank";
  EXPECT_EQ(counts_.parts, 6u);
}

TEST_F(CollectivesTest, TruncatesLongAlgorithm) {
  AddRanks(1);
  EventScript::Attributes about = Operation(9, 1, 0);
  about.back().value = std::string(10'000, 'r');
  Collects(0, about, kBase, kBase + 10);
  const auto done = Find();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].algorithm, std::string(kKeptNameBytesMax, 'r'));
}

TEST_F(CollectivesTest, GroupsOfOneJobAreKeptApartWhereGidNamesThem) {
  AddRanks(4);
  for (uint32_t step = 0; step < 2; ++step) {
    for (uint32_t rank = 0; rank < 4; ++rank) {
      Collects(rank, Operation(step, 1, rank / 2), kBase + step * 1000 + rank,
               kBase + step * 1000 + 500);
    }
  }
  const auto done = Find();
  // Rank 0 alone says its own rank, before any event shows that gid is a group.
  std::vector<std::vector<uint32_t>> second;
  for (const Collective& collective : done) {
    if (collective.exec_id == 1) second.push_back(Streams(collective));
  }
  EXPECT_THAT(second, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
}

TEST_F(CollectivesTest, JobsAreKeptApartByRootAddressAndWorldSize) {
  for (const char* instance : {"i-0", "i-1", "i-2", "i-3"}) {
    AddStream(Core(instance, 1, 0), Rank(instance[2] % 2, 2));
  }
  AddStream(Core("i-4", 1, 0), Rank(0, 8));
  for (uint32_t stream = 0; stream < 5; ++stream) {
    Collects(stream, {{"op_id", uint64_t{1}}, {"exec_id", uint64_t{1}}}, kBase + stream,
             kBase + 100);
  }
  const auto done =
      Find({.root_comm_ids = {"10.0.0.1:6", "10.0.0.1:6", "10.0.0.2:6", "10.0.0.2:6"}});
  ASSERT_EQ(done.size(), 3u);
  EXPECT_THAT(Streams(done[0]), ElementsAre(0, 1));
  EXPECT_THAT(Streams(done[1]), ElementsAre(2, 3));
  EXPECT_THAT(Streams(done[2]), ElementsAre(4));
  EXPECT_EQ(communicators_[1].root_comm_id, "10.0.0.2:6");
}

TEST_F(CollectivesTest, NamesAbsentMembers) {
  AddRanks(3);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    Collects(rank, Operation(1, 1, rank), kBase + rank, kBase + 100);
    if (rank != 1) Collects(rank, Operation(2, 1, rank), kBase + 1000 + rank, kBase + 1100);
  }
  script(1).Instant("tick", kBase + 5000);
  const auto done = Find();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].absent_count, 0u);
  EXPECT_THAT(done[1].absent, ElementsAre(1));
  EXPECT_EQ(counts_.incomplete, 1u);
}

TEST_F(CollectivesTest, MemberWhoseEventsEndEarlierIsNotAbsent) {
  AddRanks(2);
  Collects(0, Operation(1, 1, 0), kBase, kBase + 100);
  Collects(1, Operation(1, 1, 1), kBase, kBase + 100);
  Collects(0, Operation(2, 1, 0), kBase + 1000, kBase + 1100);
  const auto done = Find();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[1].absent_count, 0u);
}

TEST_F(CollectivesTest, EachAbsentCoreIsCountedThoughFewAreNamed) {
  constexpr uint32_t kRanks = CollectiveFinder::kAbsentNamedMax + 10;
  AddRanks(kRanks);
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    Collects(rank, Operation(1, 1, rank), kBase + rank, kBase + 100);
    script(rank).Instant("tick", kBase + 5000);
  }
  Collects(0, Operation(2, 1, 0), kBase + 1000, kBase + 1100);
  Collects(1, Operation(2, 1, 1), kBase + 1000, kBase + 1100);
  const auto done = Find();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[1].absent_count, kRanks - 2);
  EXPECT_EQ(done[1].absent.size(), CollectiveFinder::kAbsentNamedMax);
  Arrivals arrivals(kRanks);
  for (const Collective& collective : done) arrivals.Add(collective);
  uint64_t absent = 0;
  for (const ArrivalRow& row : arrivals.Finish(absences_)) {
    EXPECT_EQ(row.absent, row.stream < 2 ? 0u : 1u) << row.stream;
    absent += row.absent;
  }
  EXPECT_EQ(absent, kRanks - 2);
}

TEST_F(CollectivesTest, LaterParticipantIsNotAbsent) {
  AddRanks(3);
  script(2).Instant("tick", kBase);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    if (rank != 2) Collects(rank, Operation(1, 1, rank), kBase + 100, kBase + 200);
    Collects(rank, Operation(2, 1, rank), kBase + 300, kBase + 400);
    if (rank != 2) Collects(rank, Operation(3, 1, rank), kBase + 500, kBase + 600);
    script(rank).Instant("tick", kBase + 5000);
  }
  const auto done = Find();
  ASSERT_EQ(done.size(), 3u);
  EXPECT_EQ(done[0].absent_count, 0u) << "the core joins later";
  EXPECT_EQ(done[1].absent_count, 0u);
  EXPECT_THAT(done[2].absent, ElementsAre(2));
}

// As where exec_id does not agree between cores.
TEST_F(CollectivesTest, CollectiveOfOneMemberHasNoAbsentee) {
  AddRanks(3);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    Collects(rank, Operation(1, 1, rank), kBase + rank, kBase + 100);
    Collects(rank, Operation(10 + rank, 1, rank), kBase + 1000 + rank, kBase + 1100);
    script(rank).Instant("tick", kBase + 5000);
  }
  EXPECT_EQ(Find().size(), 4u);
  EXPECT_EQ(counts_.single, 3u);
  EXPECT_EQ(counts_.incomplete, 0u);
  EXPECT_THAT(absences_, ElementsAre(0, 0, 0));
}

TEST_F(CollectivesTest, BeyondTheLimitOfMembershipsACoreIsNeverAbsentAndCounted) {
  AddRanks(4);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    Collects(rank, Operation(1, 1, rank), kBase + rank, kBase + 100);
    Collects(rank, Operation(2, 1, rank), kBase + 1000 + rank, kBase + 1100);
    if (rank < 2) Collects(rank, Operation(3, 1, rank), kBase + 2000 + rank, kBase + 2100);
    script(rank).Instant("tick", kBase + 5000);
  }
  limits_.memberships_max = 3;
  const auto done = Find();
  ASSERT_EQ(done.size(), 3u);
  EXPECT_EQ(done[1].members.size(), 4u) << "the core takes part nevertheless";
  EXPECT_THAT(done[2].absent, ElementsAre(2));
  EXPECT_EQ(counts_.not_members, 1u) << "counted once, not per part";
}

TEST_F(CollectivesTest, ManyMembersEachHaveOnePart) {
  constexpr uint32_t kRanks = 40;
  AddRanks(kRanks);
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    for (uint64_t core = 0; core < 2; ++core) {  // of two physical cores
      Collects(rank, Operation(1, 1, rank), kBase + 10 * rank + core, kBase + 1000 + core);
    }
  }
  const auto done = Find();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].members.size(), kRanks);
  for (const CollectiveMember& member : done[0].members) EXPECT_EQ(member.end_ns, kBase + 1001);
}

// What a core has joined since does not hide that it is in an earlier one.
TEST_F(CollectivesTest, APartIsFoundHoweverManyOthersItsCoreHasJoinedSince) {
  constexpr uint32_t kRanks = 12;
  constexpr uint64_t kOperations = 20;
  AddRanks(kRanks);
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    for (uint64_t core = 0; core < 2; ++core) {  // the second one's parts after all of the first's
      for (uint64_t operation = 0; operation < kOperations; ++operation) {
        // Every other rank begins with the last one.
        const uint64_t op_id = rank % 2 == 0 ? operation : kOperations - 1 - operation;
        Collects(rank, Operation(1, op_id, rank), kBase + 1'000 * core + 10 * operation + rank,
                 kBase + 5'000 + core);
      }
    }
  }
  const auto done = Find();
  ASSERT_EQ(done.size(), kOperations);
  for (const Collective& collective : done) {
    ASSERT_EQ(collective.members.size(), kRanks) << collective.op_id;
    for (const CollectiveMember& member : collective.members) {
      EXPECT_EQ(member.end_ns, kBase + 5'001);
    }
  }
}

TEST_F(CollectivesTest, PhysicalCoresAreOnePartAndARepetitionIsAnother) {
  AddRanks(2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Collects(rank, Operation(1, 1, rank), kBase, kBase + 100);
    Collects(rank, Operation(1, 1, rank), kBase + 10 * (rank + 1), kBase + 120);  // overlaps
    Collects(rank, Operation(1, 1, rank), kBase + 200, kBase + 300);              // comes again
  }
  const auto done = Find();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].members.size(), 2u);
  EXPECT_EQ(done[0].members[0].end_ns, kBase + 120);
  EXPECT_EQ(done[1].members.size(), 2u);
  EXPECT_EQ(done[1].start_ns(), kBase + 200);
}

TEST_F(CollectivesTest, IdsThatDoNotAgreeBetweenCoresAreNotJoinedOverTime) {
  AddRanks(2);
  Collects(0, Operation(7, 1, 0), kBase, kBase + 100);
  Collects(1, Operation(7, 1, 1), kBase + 1'000 * kMs, kBase + 1'001 * kMs);
  EXPECT_EQ(Find().size(), 2u);
  EXPECT_EQ(counts_.single, 2u);
}

TEST_F(CollectivesTest, ReportsDisjointParts) {
  AddRanks(2);
  BoundClocks(2, 100);
  Collects(0, Operation(7, 1, 0), kBase, kBase + 1000);
  Collects(1, Operation(7, 1, 1), kBase + 1201, kBase + 2000);
  Collects(0, Operation(8, 1, 0), kBase + 5000, kBase + 6000);
  Collects(1, Operation(8, 1, 1), kBase + 6150, kBase + 7000);  // the clocks may be so wrong
  const auto done = Find({}, {.clocks = &clocks_});
  ASSERT_EQ(done.size(), 2u);
  EXPECT_TRUE(done[0].is_disjoint());
  EXPECT_FALSE(done[1].is_disjoint());
  EXPECT_EQ(counts_.disjoint, 1u);
}

TEST_F(CollectivesTest, WithoutAClocksBoundNothingIsDisjoint) {
  AddRanks(2);
  Collects(0, Operation(7, 1, 0), kBase, kBase + 1000);
  Collects(1, Operation(7, 1, 1), kBase + kMs, kBase + kMs + 1000);
  const auto done = Find();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].members.size(), 2u);
  EXPECT_FALSE(done[0].is_disjoint());
  EXPECT_EQ(done[0].skew_bound_ns(), std::nullopt);
  EXPECT_EQ(counts_.disjoint, 0u);
}

TEST_F(CollectivesTest, NamesLastMemberBeyondClockBound) {
  AddRanks(3);
  BoundClocks(3, 100);
  for (uint64_t step = 0; step < 4; ++step) {
    const uint64_t at = kBase + step * kMs;
    Collects(0, Operation(step, 1, 0), at, at + 5000);
    Collects(1, Operation(step, 1, 1), at + 50, at + 5000);
    Collects(2, Operation(step, 1, 2), at + (step < 3 ? 1050 : 60), at + 5000);
  }
  Arrivals arrivals(3);
  for (const Collective& collective : Find({}, {.clocks = &clocks_})) arrivals.Add(collective);
  const auto rows = arrivals.Finish(absences_);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].stream, 2u);
  EXPECT_EQ(rows[0].collectives, 4u);
  EXPECT_EQ(rows[0].last, 4u);
  EXPECT_EQ(rows[0].last_known, 3u);
  EXPECT_EQ(rows[0].lateness.max_ns(), 1000u) << "behind the median of the three";
  EXPECT_EQ(rows[0].lateness_bound_max_ns, 200u);
  EXPECT_EQ(rows[1].last, 0u);
  EXPECT_EQ(rows[1].waits.count(), 4u);
}

TEST_F(CollectivesTest, HostClockOrdersPartsOfOneHost) {
  AddStream(Core("i-0", 1, 0), Rank(0, 2));
  AddStream(Core("i-0", 1, 1), Rank(1, 2));
  Collects(0, Operation(1, 1, 0), kBase, kBase + 100);
  Collects(1, Operation(1, 1, 1), kBase + 1, kBase + 100);
  const auto done = Find();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].skew_bound_ns(), 0u);
  EXPECT_TRUE(done[0].is_last_known());
}

TEST_F(CollectivesTest, PartsWithoutIdsOrStartAreCounted) {
  AddRanks(1);
  Collects(0, {{"op_id", uint64_t{1}}}, kBase, kBase + 10);
  script(0).Span("enc_barrier", kBase + 20, kBase + 30, 500, 7,
                 {{"exec_id", uint64_t{1}}, {"peer_id", uint64_t{3}}});
  script(0).Stop("cc_running", kBase + 40, 501, 7);
  script(0).Span("enc_barrier", kBase + 50, kBase + 60, 502, 7,
                 {{"exec_id", uint64_t{1}}, {"peer_id", int64_t{-1}}});
  const auto done = Find();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].kind, CollectiveKind::kHostBarrier);
  EXPECT_EQ(counts_.unnumbered, 2u);
  EXPECT_EQ(counts_.start_lost, 1u);
}

TEST_F(CollectivesTest, OneIdOverAndOverHoldsFewOpen) {
  AddRanks(1);
  for (uint64_t i = 0; i < 1000; ++i) {
    Collects(0, Operation(1, 1, 0), kBase + 10 * i, kBase + 10 * i + 5);
  }
  EXPECT_EQ(Find().size(), 1000u);
  EXPECT_EQ(counts_.closed_early, 1000 - CollectiveFinder::kOpenPerKeyMax);
}

}  // namespace
}  // namespace neurontrace
