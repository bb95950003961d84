// SPDX-License-Identifier: Apache-2.0
// Tests what a certificate reports about workers, streams, agents and ranks that are absent: who,
// and why.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/certificate/certificate_world_test_support.h"
#include "aggregator/certificate/make_certificate.h"
#include "lib/base/time_units.h"
#include "lib/trace/limits.h"
#include "lib/trace/suspension.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(AbsencesTest, ReportsTooFewArmedWithoutRefusals) {
  CertificateWorld world;
  world.record.state = CaptureState::kNotBegun;
  world.Status(1, CaptureWorkerState::kArmed);
  const Certificate certificate = world.Make();
  EXPECT_FALSE(certificate.complete);
  EXPECT_EQ(certificate.verdict, "not begun: fewer workers were armed than required");
}

TEST(AbsencesTest, AStreamWithoutAnEndIsNotComplete) {
  CertificateWorld world;
  world.Status(1, CaptureWorkerState::kComplete).events_read = 30;
  world.Stream(1, 10);
  world.Stream(1, 20).ended = false;
  const Certificate certificate = world.Make();
  EXPECT_FALSE(certificate.complete);
  EXPECT_EQ(certificate.workers[0].part, WorkerPart::kVanished);
  EXPECT_TRUE(certificate.account.lost_unknown);
  EXPECT_THAT(certificate.findings,
              Contains(HasSubstr("i-a pid 1 vanished before all of its data arrived: only 1 of its "
                                 "2 streams arrived completely; 30 events are stored")));
}

// Agent and worker died at once, before the agent's first word about the worker was here.
TEST(AbsencesTest, UnreportedWorkerIsIncomplete) {
  CertificateWorld world;
  world.Stream(1, 30);
  const Certificate certificate = world.Make();
  EXPECT_FALSE(certificate.complete);
  ASSERT_EQ(certificate.workers.size(), 1u);
  EXPECT_EQ(certificate.workers[0].part, WorkerPart::kVanished);
  EXPECT_TRUE(certificate.account.lost_unknown);
}

// The aggregator refused all of it, say: nothing of it is here, and its agent has finished.
TEST(AbsencesTest, AStreamThatNeverCameIsNotComplete) {
  for (const auto state : {CaptureWorkerState::kComplete, CaptureWorkerState::kLost}) {
    CertificateWorld world;
    CaptureWorkerStatus& status = world.Status(1, state);
    status.events_read = 30;
    status.streams = 2;
    world.Stream(1, 30);
    Certificate certificate = world.Make();
    EXPECT_FALSE(certificate.complete);
    EXPECT_EQ(certificate.workers[0].part, WorkerPart::kVanished);
    EXPECT_TRUE(certificate.account.lost_unknown);

    world.record.workers[0].streams = 1;
    certificate = world.Make();
    EXPECT_TRUE(certificate.complete) << certificate.verdict;
    EXPECT_EQ(certificate.workers[0].part, WorkerPart::kRecorded);
  }
}

TEST(AbsencesTest, WorkersWithoutPartHaveReason) {
  CertificateWorld world;
  world.Status(1, CaptureWorkerState::kComplete);
  world.record.non_participants = {
      {.worker = Worker(2), .reason = NonParticipantReason::kNotSelected, .detail = "another job"},
      {.worker = {.instance_id = "i-b"}, .reason = NonParticipantReason::kAgentAway},
      {.worker = Worker(1), .reason = NonParticipantReason::kNotReported}};
  Certificate certificate = world.Make();
  EXPECT_TRUE(certificate.complete) << certificate.verdict;
  ASSERT_EQ(certificate.workers.size(), 3u);  // the one that took part after all is there once
  EXPECT_EQ(certificate.workers[0].part, WorkerPart::kIdle);
  EXPECT_EQ(certificate.workers[1].absence, WorkerAbsence::kNotSelected);
  EXPECT_EQ(certificate.workers[2].absence, WorkerAbsence::kAgentAway);
  EXPECT_THAT(certificate.notes, Contains(HasSubstr("i-a pid 2 was excluded: another job")));
  EXPECT_THAT(certificate.notes,
              Contains(HasSubstr("i-b was not asked because its agent was disconnected")));

  world.record.non_participants = {
      {.worker = Worker(3), .reason = NonParticipantReason::kNotReported}};
  certificate = world.Make();
  EXPECT_FALSE(certificate.complete);
  EXPECT_EQ(certificate.workers[0].absence, WorkerAbsence::kNotReported);
  EXPECT_EQ(certificate.verdict, "incomplete: 1 worker never took part");
}

// A table that only the command line has says the reason too; whoever reads the certificate alone
// has to find it there.
TEST(AbsencesTest, ARefusedWorkerHasItsReason) {
  CertificateWorld world;
  CaptureWorkerStatus& status = world.Status(1, CaptureWorkerState::kRefused);
  status.obstacle = CaptureObstacle::kNoTap;
  status.detail = "start it with the tap";
  EXPECT_THAT(world.Make().findings,
              ElementsAre("i-a pid 1 never took part (no tap): start it with the tap"));
}

TEST(AbsencesTest, FrameworkSourcesAreNoWorkers) {
  CertificateWorld world;
  CaptureWorkerStatus& files = world.Status(0, CaptureWorkerState::kArmed);
  files.framework = true;
  world.record.state = CaptureState::kNotBegun;
  world.record.non_participants = {
      {.worker = Worker(2), .reason = NonParticipantReason::kNotSelected, .detail = "another job"}};
  EXPECT_EQ(world.Make().verdict, "not begun: no worker matched of 1 worker; 1: another job");

  world.record.state = CaptureState::kIncomplete;
  world.record.workers[0].state = CaptureWorkerState::kRefused;
  world.Status(1, CaptureWorkerState::kRefused);
  world.Status(3, CaptureWorkerState::kRefused);
  EXPECT_EQ(world.Make().verdict, "incomplete: 2 workers and 1 framework source never took part");
}

TEST(AbsencesTest, AnAgentThatIsAwayIsWaitedFor) {
  CertificateWorld world;
  world.record.state = CaptureState::kIncomplete;
  world.record.agents[0] = {.agent_id = "agent-a",
                            .instance_id = "i-a",
                            .vanished = true,
                            .away_since_realtime_ns = 1'763'700'000 * kNsPerSecond};
  CaptureWorkerStatus& status = world.Status(1, CaptureWorkerState::kRecording);
  status.events_read = 12;
  status.streams = 1;
  world.Stream(1, 10).ended = false;
  Certificate certificate = world.Make();
  ASSERT_EQ(certificate.agents.size(), 1u);
  EXPECT_EQ(certificate.agents[0].part, AgentPart::kAwaited);
  EXPECT_FALSE(certificate.agents[0].connected);
  EXPECT_EQ(certificate.agents[0].awaited_until_realtime_ns,
            world.record.ended_realtime_ns + limits::kLateAgentMaxNs);
  EXPECT_EQ(certificate.workers[0].part, WorkerPart::kVanished);
  EXPECT_TRUE(certificate.workers[0].account.lost_unknown);
  EXPECT_EQ(certificate.workers[0].account.conserved, Conservation::kUndetermined);
  EXPECT_TRUE(certificate.workers[0].events_read_differs);
  EXPECT_THAT(certificate.findings,
              Contains("waiting for i-a (agent agent-a), away since 2025-11-21 04:40:00Z, until "
                       "2025-11-28 04:40:00Z"));
  EXPECT_THAT(certificate.findings, Contains(HasSubstr("its agent read 12 events, 10 arrived")));
  EXPECT_THAT(
      certificate.verdict,
      HasSubstr("an unknown number of events lost; 1 worker vanished; waiting for 1 agent"));

  world.record.agents[0].given_up = true;
  certificate = world.Make();
  EXPECT_EQ(certificate.agents[0].part, AgentPart::kGivenUp);
  EXPECT_THAT(certificate.findings, Contains(HasSubstr("no longer waiting for i-a")));

  // It came back late, and had lost nothing; of the worker it could say no more.
  world.record.agents[0] = {
      .agent_id = "agent-a", .instance_id = "i-a", .finished = true, .vanished = true};
  world.streams[0].ended = true;
  world.streams[0].events = world.streams[0].captured = 12;
  certificate = world.Make();
  EXPECT_TRUE(certificate.complete) << certificate.verdict;
  EXPECT_EQ(certificate.workers[0].part, WorkerPart::kRecorded);
}

TEST(AbsencesTest, UnmatchedCaptureListsExclusions) {
  CertificateWorld world;
  world.record.state = CaptureState::kIncomplete;
  world.record.non_participants = {
      {.worker = Worker(2), .reason = NonParticipantReason::kNotSelected, .detail = "job a"},
      {.worker = Worker(3), .reason = NonParticipantReason::kNotSelected, .detail = "job a"},
      {.worker = Worker(4), .reason = NonParticipantReason::kNotSelected, .detail = "job b"}};
  EXPECT_EQ(world.Make().verdict, "incomplete: no worker matched of 3 workers; 2: job a; 1: job b");
  world.record.non_participants.clear();
  EXPECT_EQ(world.Make().verdict, "incomplete: no worker matched: no other worker is visible");
  world.record.agents.clear();
  EXPECT_EQ(world.Make().verdict, "incomplete: no worker matched: no agent was connected");
}

TEST(AbsencesTest, NamesMissingRanks) {
  CertificateWorld world;
  world.Status(1, CaptureWorkerState::kComplete);
  for (const int64_t gid : {0, 1, 5}) {
    world.Stream(1, 1).evidence = {{RankSource::kTorchrun, gid, 8, ""}};
  }
  world.record.workers[0].events_read = 3;
  Certificate certificate = world.Make();
  ASSERT_EQ(certificate.ranks.size(), 1u);
  EXPECT_EQ(certificate.ranks[0].seen, 3);
  EXPECT_EQ(certificate.ranks[0].never_seen_count, 5);
  EXPECT_THAT(certificate.notes, ElementsAre("5 of 8 ranks were never seen: 2-4, 6-7"));
  EXPECT_TRUE(certificate.complete);
  EXPECT_EQ(certificate.verdict,
            "complete: every event the runtime produced is stored; 5 of 8 ranks never seen");
  EXPECT_THAT(certificate.workers[0].worker_gids, ElementsAre(0, 1, 5));

  // Ranks of idle workers and of those left out were seen.
  world.Status(2, CaptureWorkerState::kComplete);
  world.record.non_participants = {
      {.worker = Worker(3), .reason = NonParticipantReason::kNotSelected}};
  world.workers = {{.identity = Worker(2)}, {.identity = Worker(3)}};
  for (const int64_t gid : {2, 3, 4}) {
    world.workers[0].cores.push_back({.rank_evidence = {{RankSource::kTorchrun, gid, 8, ""}}});
  }
  world.workers[1].cores.push_back({.rank_evidence = {{RankSource::kTorchrun, 6, 8, ""}}});
  certificate = world.Make();
  EXPECT_THAT(certificate.notes, Contains("1 of 8 ranks were never seen: 7"));

  // Where workers disagree on how many there are, no number of missing ranks is in the verdict.
  world.record.spec.selection.job = "llama";
  for (WorkerInfo& worker : world.workers) worker.job = "llama";
  world.streams[0].evidence[0].world_size = 1'000'000;
  certificate = world.Make();
  EXPECT_TRUE(certificate.ranks[0].disputed);
  EXPECT_FALSE(certificate.complete);
  EXPECT_EQ(
      certificate.verdict,
      "every event is stored, but the workers of job llama report different world sizes: 8 (5 "
      "cores: i-a pid 1 nc 2, i-a pid 2 nc 0 and 3 more), 1000000 (1 core: i-a pid 1 nc 1)");
}

TEST(AbsencesTest, AVerdictNamesEveryKindOfFinding) {
  CertificateWorld world;
  for (const uint32_t pid : {1u, 2u, 4u}) {
    world.Status(pid, CaptureWorkerState::kComplete).events_read = 10;
  }
  world.Status(3, CaptureWorkerState::kRefused);
  for (const uint32_t pid : {1, 2}) {
    StreamRecord& stream = world.Stream(pid, 10);
    stream.job = "twice";
    stream.first_timestamp_ns = 5;
    stream.last_timestamp_ns = 9;
    stream.evidence = {{RankSource::kTorchrun, 1, 4, "RANK=1"}};
    stream.remarks = {{.kind = RemarkKind::kRankContradiction, .count = 1, .details = {"a"}}};
  }
  StreamRecord& other = world.Stream(4, 10);
  other.job = "other";
  other.evidence = {{RankSource::kTorchrun, 0, 8, "RANK=0"}};
  EXPECT_EQ(world.Make().verdict,
            "incomplete: 1 worker never took part; 2 ranks are contradicted; 1 rank claimed by "
            "several cores at once; 7 of 8 ranks of job other, 3 of 4 ranks of job twice never "
            "seen");
}

TEST(AbsencesTest, ARankThatIsClaimedTwiceIsAFinding) {
  CertificateWorld world;
  for (const uint32_t pid : {1, 2}) {
    world.Status(pid, CaptureWorkerState::kComplete).events_read = 1;
    StreamRecord& stream = world.Stream(pid, 1);
    stream.evidence = {{RankSource::kTorchrun, 3, 8, "RANK=3"}};
    stream.first_timestamp_ns = 100 * pid;
    stream.last_timestamp_ns = 250;
    stream.job = "llama";
  }
  Certificate certificate = world.Make();
  EXPECT_FALSE(certificate.complete);
  ASSERT_EQ(certificate.jobs.size(), 1u);
  EXPECT_EQ(certificate.jobs[0].disputes_count, 1u);
  EXPECT_EQ(certificate.jobs[0].account.stored, 2u);
  EXPECT_THAT(certificate.findings,
              ElementsAre(HasSubstr("worker_gid 3 of job llama is claimed by 2 cores at once")));
  // Of workers that nobody remembers not even the job is known.
  for (StreamRecord& stream : world.streams) stream.job.clear();
  certificate = world.Make();
  EXPECT_TRUE(certificate.complete) << certificate.verdict;
  EXPECT_THAT(certificate.notes, Contains(HasSubstr("the ranks of 2 cores are not compared")));
  for (StreamRecord& stream : world.streams) stream.job = "llama";
  // One after the other is a restart.
  world.streams[0].last_timestamp_ns = 150;
  certificate = world.Make();
  EXPECT_TRUE(certificate.complete) << certificate.verdict;
}

// A claim that was withdrawn or replaced is not among the ranks of the worker any more.
TEST(AbsencesTest, AStreamHasTheRankThatItIsBoundToAndNoOther) {
  CertificateWorld world;
  world.Status(1, CaptureWorkerState::kComplete).events_read = 2;
  world.Stream(1, 1).evidence = {{RankSource::kTorchrun, 4, 8, ""}};
  world.Stream(1, 1);
  world.workers = {{.identity = Worker(1),
                    .cores = {{1, {{RankSource::kSlurm, 1, 8, ""}}},
                              {2, {{RankSource::kSlurm, 2, 8, ""}}},
                              {3, {{RankSource::kSlurm, 3, 8, ""}}}}}};
  const Certificate certificate = world.Make();
  EXPECT_THAT(certificate.workers[0].worker_gids, ElementsAre(3, 4));
  EXPECT_EQ(certificate.jobs.at(0).ranks_seen, 2);
  EXPECT_EQ(certificate.jobs.at(0).cores_without_rank, 1u);
}

TEST(AbsencesTest, BoundsTheRangesOfRanks) {
  CertificateWorld world;
  world.Status(1, CaptureWorkerState::kComplete).events_read = 100;
  for (int64_t gid = 0; gid < 100; ++gid) {
    world.Stream(1, 1).evidence = {{RankSource::kTorchrun, 2 * gid, INT64_MAX, ""}};
  }
  const MissingRanks ranks = world.Make().ranks.at(0);
  EXPECT_EQ(ranks.never_seen.size(), limits::kCertificateRankRangesMax);
  EXPECT_EQ(ranks.never_seen_count, INT64_MAX - 100);
}

// The text about times in which other captures had a continuous capture's workers.

StreamRecord Stream(uint32_t number, uint64_t events) {
  StreamRecord stream;
  stream.number = number;
  stream.identity = {.agent_id = "agent-a",
                     .worker = {.instance_id = "i-a", .boot_id = "b", .pid = 1},
                     .kind = StreamKind::kNeuronCore,
                     .nc_idx = number};
  stream.events = stream.captured = events;
  stream.ended = true;
  return stream;
}

// A capture that was suspended for another has a hole, and reports when: no loss, and not all there
// was.
TEST(Suspensions, ReportsSuspendedTimeAsNotRecorded) {
  CaptureRecord record;
  record.state = CaptureState::kComplete;
  record.started_realtime_ns = 1'000'000'000;
  record.stopped_realtime_ns = record.started_realtime_ns + 1'000'000'000;
  record.agents = {{.agent_id = "agent-a", .instance_id = "i-a", .finished = true}};
  record.workers = {{.worker = {.instance_id = "i-a", .boot_id = "b", .pid = 1},
                     .state = CaptureWorkerState::kComplete,
                     .events_read = 20,
                     .streams = 2}};
  std::vector<StreamRecord> streams = {Stream(1, 20), Stream(2, 0)};
  const auto make = [&record, &streams] {
    return MakeCertificate({.record = record, .streams = streams, .workers = {}});
  };
  const CaptureId other = *CaptureId::Parse("01ARZ3NDEKTSV4RRFFQ69G5FAV");
  const std::string words = "capture " + other.ToString() + " had the worker";
  StreamRecord& stream = streams[1];
  const uint64_t at_ns = 1'763'700'000 * kNsPerSecond;
  stream.suspensions = {{other, at_ns + kNsPerSecond, at_ns + 3 * kNsPerSecond},
                        {{}, at_ns + 5 * kNsPerSecond, at_ns + 5 * kNsPerSecond},
                        {other, at_ns + 7 * kNsPerSecond, at_ns + 9 * kNsPerSecond}};
  Certificate certificate = make();
  EXPECT_TRUE(certificate.complete) << certificate.verdict;
  EXPECT_EQ(certificate.verdict,
            "complete except while other captures used 1 worker (up to 4.0 s): every event that "
            "was recorded is stored");
  EXPECT_THAT(certificate.account.losses, IsEmpty());
  EXPECT_EQ(certificate.workers[0].gaps, 0u);
  EXPECT_THAT(certificate.workers[0].longest_gaps, IsEmpty());
  EXPECT_THAT(
      certificate.notes,
      ElementsAre("i-a pid 1 did not record from 2025-11-21 04:40:01Z to 2025-11-21 "
                  "04:40:03Z (2.0 s): " +
                  words + "; from 2025-11-21 04:40:07Z to 2025-11-21 04:40:09Z (2.0 s): " + words));

  // While it continues, and where something is lost besides.
  record.state = CaptureState::kRecording;
  EXPECT_THAT(make().verdict, HasSubstr("; except while other captures used"));
  record.state = CaptureState::kIncomplete;
  stream.losses.push_back({.place = LossPlace::kTapBuffer, .events = 1});
  EXPECT_THAT(make().verdict, HasSubstr("; except while other captures used"));

  // Before what is kept nothing is left to be said of it.
  stream.losses.push_back({.place = LossPlace::kRetention,
                           .reason = LossReason::kExpired,
                           .events = 1,
                           .last_timestamp_ns = at_ns + 4 * kNsPerSecond});
  EXPECT_EQ(make().workers[0].suspensions.size(), 1u);
}

}  // namespace
}  // namespace neurontrace
