// SPDX-License-Identifier: Apache-2.0
// What becomes of a worker, a stream, an agent and a rank in a certificate, case by case, over
// plain records: no store and no clock.
#include "aggregator/certificate/make_certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/certificate/event_account.h"
#include "base/time_units.h"
#include "trace/fidelity.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

WorkerIdentity Worker(uint32_t pid) { return {.instance_id = "i-a", .boot_id = "b", .pid = pid}; }

// A capture of one agent that has ended, with what the test puts into it.
struct World {
  World() {
    record.state = CaptureState::kComplete;
    record.ended_realtime_ns = 1'763'700'000 * kNsPerSecond;
    record.agents = {{.agent_id = "agent-a", .instance_id = "i-a", .finished = true}};
  }
  CaptureWorkerStatus& Status(uint32_t pid, CaptureWorkerState state) {
    record.workers.push_back({.worker = Worker(pid), .state = state});
    return record.workers.back();
  }
  StreamRecord& Stream(uint32_t pid, uint64_t events, std::vector<Loss> losses = {}) {
    StreamRecord& stream = streams.emplace_back();
    stream.number = static_cast<uint32_t>(streams.size());
    stream.identity = {.agent_id = "agent-a",
                       .worker = Worker(pid),
                       .kind = StreamKind::kNeuronCore,
                       .nc_idx = stream.number};
    stream.events = stream.captured = events;
    for (const Loss& loss : losses) {
      if (loss.place >= LossPlace::kAgentQueue) stream.captured += loss.events;
    }
    stream.losses = std::move(losses);
    stream.ended = true;
    return stream;
  }
  Certificate Make() const {
    return MakeCertificate({.record = record, .streams = streams, .workers = workers});
  }

  CaptureRecord record;
  std::vector<StreamRecord> streams;
  std::vector<WorkerInfo> workers;
};

TEST(EventAccount, HoldsTheLaw) {
  struct Case {
    const char* name;
    uint64_t captured;
    uint64_t stored;
    std::vector<Loss> losses;
    uint64_t expected;
    uint64_t lost;
    Conservation conserved;
  };
  const Loss ring{
      .place = LossPlace::kRuntimeRing, .reason = LossReason::kOverwritten, .events = 7};
  const Loss decode{.place = LossPlace::kDecode, .reason = LossReason::kLimit, .events = 2};
  const Loss spool{.place = LossPlace::kSpool, .reason = LossReason::kFull, .events = 5};
  const Loss tap_unknown{.place = LossPlace::kTapBuffer, .events_unknown = true};
  const Loss way_unknown{.place = LossPlace::kStore, .events_unknown = true};
  const Loss words{.place = LossPlace::kTapBuffer, .detail = "counted elsewhere"};
  const Case cases[] = {
      {"whole", 10, 10, {}, 10, 0, Conservation::kYes},
      {"nothing", 0, 0, {}, 0, 0, Conservation::kYes},
      {"lost before it was captured", 10, 10, {ring, decode}, 19, 9, Conservation::kYes},
      {"lost on the way", 15, 10, {spool}, 15, 5, Conservation::kYes},
      {"lost at both", 15, 10, {ring, spool}, 22, 12, Conservation::kYes},
      {"unknown before", 10, 10, {tap_unknown}, 10, 0, Conservation::kCannotSay},
      {"unknown on the way", 15, 10, {way_unknown}, 15, 0, Conservation::kCannotSay},
      {"fewer than accounted for", 15, 11, {spool}, 15, 5, Conservation::kNo},
      {"more than accounted for", 15, 9, {spool}, 15, 5, Conservation::kNo},
      {"unknown before explains nothing", 15, 10, {tap_unknown}, 15, 0, Conservation::kNo},
      {"words without events are no loss", 10, 10, {words}, 10, 0, Conservation::kYes},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    StreamRecord stream;
    stream.captured = test.captured;
    stream.events = test.stored;
    stream.losses = test.losses;
    const EventAccount account = AccountOf(stream);
    EXPECT_EQ(account.expected, test.expected);
    EXPECT_EQ(account.captured, test.captured);
    EXPECT_EQ(account.stored, test.stored);
    EXPECT_EQ(account.lost, test.lost);
    EXPECT_EQ(account.conserved, test.conserved);
    if (!account.lost_unknown && account.conserved == Conservation::kYes) {
      EXPECT_EQ(account.expected, account.stored + account.lost);
    }
  }
}

TEST(EventAccount, SumsByPlaceAndReasonAndKeepsTheWorst) {
  EventAccount sum;
  EventAccount one{.expected = 12, .captured = 12, .stored = 10, .lost = 2};
  one.losses = {{.place = LossPlace::kSpool, .reason = LossReason::kFull, .events = 2}};
  sum.Add(one);
  sum.Add(one);
  EXPECT_EQ(sum.expected, 24u);
  EXPECT_EQ(sum.lost, 4u);
  ASSERT_EQ(sum.losses.size(), 1u);
  EXPECT_EQ(sum.losses[0].events, 4u);
  EXPECT_EQ(sum.conserved, Conservation::kYes);
  one.conserved = Conservation::kCannotSay;
  sum.Add(one);
  EXPECT_EQ(sum.conserved, Conservation::kCannotSay);
  one.conserved = Conservation::kNo;
  sum.Add(one);
  one.conserved = Conservation::kCannotSay;
  sum.Add(one);
  EXPECT_EQ(sum.conserved, Conservation::kNo);
}

TEST(MakeCertificate, EverythingStoredIsComplete) {
  World world;
  world.Status(1, CaptureWorkerState::kComplete).events_read = 30;
  world.Stream(1, 10);
  world.Stream(1, 20);
  const Certificate certificate = world.Make();
  EXPECT_TRUE(certificate.complete);
  EXPECT_FALSE(certificate.provisional);
  EXPECT_EQ(certificate.verdict, "complete: every event the runtime produced is stored");
  EXPECT_EQ(certificate.account.stored, 30u);
  ASSERT_EQ(certificate.workers.size(), 1u);
  EXPECT_EQ(certificate.workers[0].part, WorkerPart::kRecorded);
  EXPECT_EQ(certificate.workers[0].streams.size(), 2u);
  EXPECT_EQ(certificate.workers[0].agent_id, "agent-a");
  EXPECT_EQ(certificate.workers[0].clock.words, "not aligned");
}

TEST(MakeCertificate, AnExecutionThatWasNotReachedIsFound) {
  World world;
  world.record.spec = {.at_execution = 4'711};
  world.record.begin = CaptureBegin{.first_execution = 4'711};
  world.Status(1, CaptureWorkerState::kComplete).events_read = 5;
  world.Stream(1, 5);
  EXPECT_TRUE(world.Make().complete);
  world.Status(2, CaptureWorkerState::kComplete);
  const Certificate one = world.Make();
  EXPECT_FALSE(one.complete);
  EXPECT_EQ(one.verdict, "incomplete: 1 worker reached none of the executions");
  EXPECT_THAT(one.findings,
              ElementsAre("i-a pid 2 recorded nothing: it did not reach execution 4711"));
  // `next` that was never chosen.
  world.record.spec = {.at_next_execution = true};
  world.record.begin = CaptureBegin();
  EXPECT_THAT(world.Make().findings, ElementsAre(HasSubstr("no execution to begin at was found")));
  // While it goes on it may still come.
  world.record.state = CaptureState::kRecording;
  EXPECT_THAT(world.Make().findings, IsEmpty());
}

// What became of one worker, by what is known of it.
struct PartCase {
  const char* name;
  CaptureWorkerState state;
  WorkerState worker_state;
  bool has_stream;
  uint64_t stored;
  std::vector<Loss> losses;
  WorkerPart part;
  WorkerAbsence absence;
  bool complete;
};

std::vector<PartCase> PartCases() {
  const Loss all{.place = LossPlace::kTapBuffer, .reason = LossReason::kFull, .events = 9};
  const Loss unknown{.place = LossPlace::kRuntimeRing, .events_unknown = true};
  using State = CaptureWorkerState;
  using Part = WorkerPart;
  using Absence = WorkerAbsence;
  return {
      {"recorded", State::kComplete, {}, true, 5, {}, Part::kRecorded, {}, true},
      {"recorded in part", State::kComplete, {}, true, 5, {all}, Part::kRecorded, {}, false},
      {"idle", State::kComplete, {}, false, 0, {}, Part::kIdle, {}, true},
      {"idle, empty stream", State::kComplete, {}, true, 0, {}, Part::kIdle, {}, true},
      {"all lost", State::kComplete, {}, true, 0, {all}, Part::kDataLost, {}, false},
      {"lost, uncounted", State::kComplete, {}, true, 0, {unknown}, Part::kDataLost, {}, false},
      {"refused",
       State::kRefused,
       WorkerState::kFailed,
       false,
       0,
       {},
       Part::kNever,
       Absence::kRefused,
       false},
      {"busy",
       State::kRefused,
       WorkerState::kBusyOtherProfiler,
       false,
       0,
       {},
       Part::kNever,
       Absence::kBusyOtherProfiler,
       false},
      {"too old",
       State::kRefused,
       WorkerState::kRuntimeTooOld,
       false,
       0,
       {},
       Part::kNever,
       Absence::kNoRuntime,
       false},
      {"not initialised",
       State::kRefused,
       WorkerState::kNotInitialised,
       false,
       0,
       {},
       Part::kNever,
       Absence::kNoRuntime,
       false},
      {"refused in the end", State::kRefused, {}, true, 4, {}, Part::kRecorded, {}, true},
      {"died", State::kLost, {}, true, 5, {unknown}, Part::kVanished, {}, false},
      {"died with nothing", State::kLost, {}, false, 0, {}, Part::kVanished, {}, false},
      {"died, but all is here", State::kLost, {}, true, 5, {}, Part::kRecorded, {}, true},
  };
}

TEST(MakeCertificate, TellsTheParts) {
  for (const PartCase& test : PartCases()) {
    SCOPED_TRACE(test.name);
    World world;
    CaptureWorkerStatus& status = world.Status(1, test.state);
    status.worker_state = test.worker_state;
    status.events_read = test.stored;
    status.streams = test.has_stream ? 1 : 0;
    if (test.has_stream) world.Stream(1, test.stored, test.losses);
    const Certificate certificate = world.Make();
    ASSERT_EQ(certificate.workers.size(), 1u);
    EXPECT_EQ(certificate.workers[0].part, test.part);
    EXPECT_EQ(certificate.workers[0].absence, test.absence);
    EXPECT_EQ(certificate.complete, test.complete) << certificate.verdict;
    EXPECT_EQ(certificate.findings.empty(), test.complete);
  }
}

TEST(MakeCertificate, OfACaptureThatDidNotBeginNothingIsLost) {
  World world;
  world.record.state = CaptureState::kNotBegun;
  world.Status(1, CaptureWorkerState::kArmed);
  world.Status(2, CaptureWorkerState::kRefused).detail = "no tap";
  const Certificate certificate = world.Make();
  EXPECT_FALSE(certificate.complete);
  EXPECT_FALSE(certificate.account.lost_unknown);
  EXPECT_EQ(certificate.verdict, "not begun: 1 worker never took part");
  EXPECT_THAT(certificate.notes, Contains("i-a pid 1 was armed"));
}

TEST(MakeCertificate, FilesOfTheProfilerThatAreNotKeptAreANote) {
  World world;
  world.Status(1, CaptureWorkerState::kComplete);
  std::vector<ArtifactForgone> forgone;
  for (const char* const name : {"a.neff", "b.ntff", "c.ntff", "d.ntff", "e.ntff"}) {
    forgone.push_back({.capture_id = {},
                       .agent_id = "agent",
                       .place = MakeArtifactPlace("i-a_pid_1", "", name).value(),
                       .bytes = 1,
                       .reason = "it changed"});
  }
  const Certificate certificate = MakeCertificate(
      {.record = world.record, .streams = {}, .workers = {}, .artifacts_forgone = forgone});
  EXPECT_THAT(
      certificate.notes,
      Contains("5 files of the vendor's profiler are not kept: i-a_pid_1/a.neff (it changed), "
               "i-a_pid_1/b.ntff (it changed), i-a_pid_1/c.ntff (it changed) and 2 more"));
  EXPECT_TRUE(certificate.findings.empty());
}

TEST(MakeCertificate, WhereNobodyWasRefusedItSaysThatTooFewWereArmed) {
  World world;
  world.record.state = CaptureState::kNotBegun;
  world.Status(1, CaptureWorkerState::kArmed);
  const Certificate certificate = world.Make();
  EXPECT_FALSE(certificate.complete);
  EXPECT_EQ(certificate.verdict, "not begun: fewer workers were armed than it requires");
}

TEST(MakeCertificate, AStreamWithoutAnEndIsNotComplete) {
  World world;
  world.Status(1, CaptureWorkerState::kComplete).events_read = 30;
  world.Stream(1, 10);
  world.Stream(1, 20).ended = false;
  const Certificate certificate = world.Make();
  EXPECT_FALSE(certificate.complete);
  EXPECT_EQ(certificate.workers[0].part, WorkerPart::kVanished);
  EXPECT_TRUE(certificate.account.lost_unknown);
  EXPECT_THAT(certificate.findings,
              Contains(HasSubstr("i-a pid 1 vanished before all of it was here: only 1 of its 2 "
                                 "streams came to their end here; 30 events are stored")));
}

// Agent and worker died at once, before the agent's first word about the worker was here.
TEST(MakeCertificate, AWorkerOfWhichNoAgentSaidAWordIsNotComplete) {
  World world;
  world.Stream(1, 30);
  const Certificate certificate = world.Make();
  EXPECT_FALSE(certificate.complete);
  ASSERT_EQ(certificate.workers.size(), 1u);
  EXPECT_EQ(certificate.workers[0].part, WorkerPart::kVanished);
  EXPECT_TRUE(certificate.account.lost_unknown);
}

// The aggregator refused all of it, say: nothing of it is here, and its agent has finished.
TEST(MakeCertificate, AStreamThatNeverCameIsNotComplete) {
  for (const auto state : {CaptureWorkerState::kComplete, CaptureWorkerState::kLost}) {
    World world;
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

TEST(MakeCertificate, WorkersWithoutAPartSayWhy) {
  World world;
  world.Status(1, CaptureWorkerState::kComplete);
  world.record.bystanders = {
      {.worker = Worker(2), .reason = BystanderReason::kNotSelected, .detail = "another job"},
      {.worker = {.instance_id = "i-b"}, .reason = BystanderReason::kAgentAway},
      {.worker = Worker(1), .reason = BystanderReason::kNotReported}};
  Certificate certificate = world.Make();
  EXPECT_TRUE(certificate.complete) << certificate.verdict;
  ASSERT_EQ(certificate.workers.size(), 3u);  // the one that took part after all is there once
  EXPECT_EQ(certificate.workers[0].part, WorkerPart::kIdle);
  EXPECT_EQ(certificate.workers[1].absence, WorkerAbsence::kNotSelected);
  EXPECT_EQ(certificate.workers[2].absence, WorkerAbsence::kAgentAway);
  EXPECT_THAT(certificate.notes, Contains(HasSubstr("i-a pid 2 was left out: another job")));
  EXPECT_THAT(certificate.notes, Contains(HasSubstr("i-b was not asked, its agent was away")));

  world.record.bystanders = {{.worker = Worker(3), .reason = BystanderReason::kNotReported}};
  certificate = world.Make();
  EXPECT_FALSE(certificate.complete);
  EXPECT_EQ(certificate.workers[0].absence, WorkerAbsence::kNotReported);
  EXPECT_EQ(certificate.verdict, "incomplete: 1 worker never took part");
}

TEST(MakeCertificate, AnAgentThatIsAwayIsWaitedFor) {
  World world;
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
  EXPECT_EQ(certificate.workers[0].account.conserved, Conservation::kCannotSay);
  EXPECT_TRUE(certificate.workers[0].events_read_differs);
  EXPECT_THAT(certificate.findings,
              Contains("waiting for i-a (agent agent-a), away since 2025-11-21 04:40:00Z, until "
                       "2025-11-28 04:40:00Z"));
  EXPECT_THAT(certificate.findings,
              Contains(HasSubstr("its agent says that it read 12 events, 10 arrived")));
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

TEST(MakeCertificate, WhatTheAgentSaysItReadIsCompared) {
  struct Case {
    uint64_t read;
    bool differs;
  };
  for (const Case& test : {Case{12, false}, Case{11, true}, Case{13, true}}) {
    SCOPED_TRACE(test.read);
    World world;
    world.Status(1, CaptureWorkerState::kComplete).events_read = test.read;
    // An event that no chunk could hold was read; one that the ring lost was not.
    world.Stream(1, 10,
                 {{.place = LossPlace::kDecode, .reason = LossReason::kLimit, .events = 2},
                  {.place = LossPlace::kRuntimeRing, .events = 50}});
    const Certificate certificate = world.Make();
    EXPECT_EQ(certificate.workers[0].events_read_differs, test.differs);
  }
}

TEST(MakeCertificate, SumsThatDoNotAgreeComeFirstAndAreCalledADefect) {
  World world;
  world.Status(1, CaptureWorkerState::kComplete);
  world.Stream(1, 10, {{.place = LossPlace::kSpool, .events = 100}});
  world.Status(2, CaptureWorkerState::kComplete).events_read = 12;
  world.Stream(2, 10).captured = 12;
  const Certificate certificate = world.Make();
  EXPECT_EQ(certificate.workers[0].worker.pid, 2u);
  EXPECT_EQ(certificate.workers[0].account.conserved, Conservation::kNo);
  EXPECT_EQ(certificate.account.conserved, Conservation::kNo);
  EXPECT_THAT(certificate.findings, Contains(HasSubstr("a defect of neurontrace")));
}

TEST(MakeCertificate, ProvisionalWhileItGoesOn) {
  World world;
  world.record.state = CaptureState::kRecording;
  world.record.agents[0].finished = false;
  world.Status(1, CaptureWorkerState::kRecording).events_read = 25;  // more is on its way
  world.Stream(1, 20, {{.place = LossPlace::kRuntimeRing, .events = 3}}).ended = false;
  const Certificate certificate = world.Make();
  EXPECT_TRUE(certificate.provisional);
  EXPECT_FALSE(certificate.complete);
  EXPECT_EQ(certificate.verdict, "provisional: 20 events stored so far, 3 lost");
  EXPECT_EQ(certificate.workers[0].part, WorkerPart::kRecorded);
  EXPECT_FALSE(certificate.workers[0].events_read_differs);
  EXPECT_EQ(certificate.agents[0].part, AgentPart::kRecording);
}

TEST(MakeCertificate, ACaptureThatMatchedNobodySaysWhatExcludedWhom) {
  World world;
  world.record.state = CaptureState::kIncomplete;
  world.record.bystanders = {
      {.worker = Worker(2), .reason = BystanderReason::kNotSelected, .detail = "job a"},
      {.worker = Worker(3), .reason = BystanderReason::kNotSelected, .detail = "job a"},
      {.worker = Worker(4), .reason = BystanderReason::kNotSelected, .detail = "job b"}};
  EXPECT_EQ(world.Make().verdict, "incomplete: no worker matched of 3 workers; 2: job a; 1: job b");
  world.record.bystanders.clear();
  EXPECT_EQ(world.Make().verdict, "incomplete: no worker matched: the agents report no worker");
  world.record.agents.clear();
  EXPECT_EQ(world.Make().verdict, "incomplete: no worker matched: no agent was connected");
}

TEST(MakeCertificate, NamesTheRanksThatNobodyHas) {
  World world;
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
  world.record.bystanders = {{.worker = Worker(3), .reason = BystanderReason::kNotSelected}};
  world.workers = {{.identity = Worker(2)}, {.identity = Worker(3)}};
  for (const int64_t gid : {2, 3, 4}) {
    world.workers[0].cores.push_back({.rank_evidence = {{RankSource::kTorchrun, gid, 8, ""}}});
  }
  world.workers[1].cores.push_back({.rank_evidence = {{RankSource::kTorchrun, 6, 8, ""}}});
  certificate = world.Make();
  EXPECT_THAT(certificate.notes, Contains("1 of 8 ranks were never seen: 7"));

  // Where workers disagree on how many there are, it is no more than a note.
  world.streams[0].evidence[0].world_size = 1'000'000;
  certificate = world.Make();
  EXPECT_TRUE(certificate.ranks[0].disputed);
  EXPECT_EQ(certificate.verdict, "complete: every event the runtime produced is stored");
}

TEST(MakeCertificate, BoundsTheRangesOfRanks) {
  World world;
  world.Status(1, CaptureWorkerState::kComplete).events_read = 100;
  for (int64_t gid = 0; gid < 100; ++gid) {
    world.Stream(1, 1).evidence = {{RankSource::kTorchrun, 2 * gid, INT64_MAX, ""}};
  }
  const MissingRanks ranks = world.Make().ranks.at(0);
  EXPECT_EQ(ranks.never_seen.size(), limits::kCertificateRankRangesMax);
  EXPECT_EQ(ranks.never_seen_count, INT64_MAX - 100);
}

TEST(MakeCertificate, ShowsTheLongestGaps) {
  World world;
  world.Status(1, CaptureWorkerState::kComplete).events_read = 10;
  StreamRecord& stream = world.Stream(1, 10, {{.place = LossPlace::kRuntimeRing, .events = 20}});
  for (uint64_t i = 0; i < 20; ++i) {
    stream.gaps.push_back({.place = LossPlace::kRuntimeRing,
                           .events = 1,
                           .first_timestamp_ns = 1'000 * (i + 1),
                           .last_timestamp_ns = 1'000 * (i + 1) + (i % 10)});
  }
  stream.gaps_count = 18;
  stream.gaps_sum_ns = 90;
  const WorkerCertificate worker = world.Make().workers.at(0);
  EXPECT_EQ(worker.gaps, 18u);
  EXPECT_EQ(worker.gaps_sum_ns, 90u);
  ASSERT_EQ(worker.longest_gaps.size(), limits::kCertificateGapsMax);
  EXPECT_EQ(worker.longest_gaps[0].loss.first_timestamp_ns, 10'000u);
  EXPECT_EQ(worker.longest_gaps[2].loss.last_timestamp_ns, 9'008u);
}

TEST(MakeCertificate, FrameworkFilesOfAnInstanceStandTogether) {
  World world;
  world.record.workers.push_back({.worker = {.instance_id = "i-a", .boot_id = "b"},
                                  .state = CaptureWorkerState::kComplete,
                                  .events_read = 3,
                                  .framework = true});
  world.Stream(7, 1).identity.kind = StreamKind::kFramework;
  world.Stream(8, 2).identity.kind = StreamKind::kFramework;
  const Certificate certificate = world.Make();
  EXPECT_TRUE(certificate.complete) << certificate.verdict;
  ASSERT_EQ(certificate.workers.size(), 1u);
  EXPECT_TRUE(certificate.workers[0].framework);
  EXPECT_EQ(certificate.workers[0].account.stored, 3u);
}

TEST(MakeCertificate, BoundsTheFindings) {
  World world;
  for (uint32_t pid = 1; pid <= 100; ++pid) world.Status(pid, CaptureWorkerState::kRefused);
  const Certificate certificate = world.Make();
  EXPECT_EQ(certificate.workers.size(), 100u);
  ASSERT_EQ(certificate.findings.size(), limits::kCaptureWarningsMax);
  EXPECT_EQ(certificate.findings.back(), "and 37 more");
  EXPECT_EQ(certificate.verdict, "incomplete: 100 workers never took part");
}

// What a budget left out is told apart from what was lost: the capture is complete, with a note.
TEST(MakeCertificate, WhatABudgetLeftOutIsNoLoss) {
  World world;
  world.Status(1, CaptureWorkerState::kComplete).events_read = 20;
  world.record.workers.back().streams = 2;
  const std::string words =
      "without allocation events, as the budget of 2 % of a processor was spent";
  world.Stream(1, 10,
               {LeftOutFromTo(1'763'700'001 * kNsPerSecond, 1'763'700'003 * kNsPerSecond, words)});
  world.Stream(1, 10,
               {LeftOutFromTo(1'763'700'002 * kNsPerSecond, 1'763'700'009 * kNsPerSecond, words)});
  world.Status(2, CaptureWorkerState::kComplete).events_read = 5;
  world.record.workers.back().streams = 1;
  world.Stream(2, 5);
  const Certificate certificate = world.Make();
  EXPECT_TRUE(certificate.complete) << certificate.verdict;
  EXPECT_EQ(certificate.account.lost, 0u);
  EXPECT_THAT(certificate.account.losses, IsEmpty());
  EXPECT_EQ(certificate.verdict,
            "complete: every event that was recorded is stored; 1 worker left some out to keep to "
            "the budget");
  EXPECT_THAT(
      certificate.notes,
      ElementsAre("i-a pid 1 recorded from 2025-11-21 04:40:01Z to 2025-11-21 04:40:09Z " + words));
}

}  // namespace
}  // namespace neurontrace
