// SPDX-License-Identifier: Apache-2.0
// The outcome of a worker, a stream, an agent and a rank in a certificate, case by case, over
// plain records: no store and no clock.
#include "aggregator/certificate/make_certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "aggregator/certificate/certificate_world_test_support.h"
#include "lib/base/time_units.h"
#include "lib/trace/fidelity.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(MakeCertificate, EverythingStoredIsComplete) {
  CertificateWorld world;
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

// All events are there, and something has to be said of them all the same.
TEST(MakeCertificate, ARemarkIsAFindingOrANote) {
  CertificateWorld world;
  CaptureWorkerStatus& status = world.Status(1, CaptureWorkerState::kComplete);
  status.events_read = 30;
  status.remarks = {{.kind = RemarkKind::kOpenSpan, .count = 2, .details = {}}};
  world.Stream(1, 30).remarks = {
      {.kind = RemarkKind::kOpenSpan, .count = 1, .details = {"element 7"}}};
  Certificate certificate = world.Make();
  EXPECT_TRUE(certificate.complete);
  EXPECT_THAT(certificate.notes,
              ElementsAre("i-a pid 1: 3 spans begin and do not end (element 7; …)"));
  world.streams[0].remarks.push_back(
      {.kind = RemarkKind::kRankContradiction, .count = 1, .details = {"RANK=3 against 5"}});
  certificate = world.Make();
  EXPECT_FALSE(certificate.complete);
  EXPECT_EQ(certificate.verdict,
            "every event is stored, but i-a pid 1: 1 rank is contradicted (RANK=3 against 5)");
}

TEST(MakeCertificate, AnExecutionThatWasNotReachedIsFound) {
  CertificateWorld world;
  world.record.spec = {.conditions = {.at_execution = 4'711}};
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
  world.record.spec = {.conditions = {.at_next_execution = true}};
  world.record.begin = CaptureBegin();
  EXPECT_THAT(world.Make().findings, ElementsAre(HasSubstr("no execution to start at was found")));
  // While it continues it may still come.
  world.record.state = CaptureState::kRecording;
  EXPECT_THAT(world.Make().findings, IsEmpty());
}

TEST(MakeCertificate, ACoreThatBeganLateIsFoundBehindItsNeighbour) {
  CertificateWorld world;
  world.record.spec = {.conditions = {.at_execution = 40, .executions = 10}};
  world.record.begin = CaptureBegin{.first_execution = 40, .last_execution = 49};
  CaptureWorkerStatus& status = world.Status(1, CaptureWorkerState::kComplete);
  status.events_read = 5;
  status.first_execution = status.highest_first_execution = 40;
  status.lowest_newest_execution = status.newest_execution = 50;
  world.Stream(1, 5);
  EXPECT_TRUE(world.Make().complete);
  EXPECT_THAT(world.Make().notes, IsEmpty());
  status.lowest_newest_execution = 45;
  EXPECT_TRUE(world.Make().complete);
  EXPECT_THAT(world.Make().notes,
              ElementsAre("i-a pid 1: not all of its cores reached execution 49: the newest was 45 "
                          "on one of them"));
  status.highest_first_execution = 41;
  const Certificate late = world.Make();
  EXPECT_FALSE(late.complete);
  EXPECT_EQ(late.verdict, "incomplete: 1 worker did not record the first execution on every core");
  EXPECT_THAT(late.findings,
              ElementsAre("i-a pid 1: its cores began at executions 40 to 41, not all at 40"));
  // While it continues the other core may still come.
  world.record.state = CaptureState::kRecording;
  EXPECT_THAT(world.Make().findings, IsEmpty());
}

// Stamps that were lost, or that a clock gave which was set back while the machine was off.
TEST(MakeCertificate, ACaptureOfUnknownLengthIsIncomplete) {
  CertificateWorld world;
  world.Status(1, CaptureWorkerState::kComplete).events_read = 5;
  world.Stream(1, 5);
  const uint64_t started_ns = std::exchange(world.record.started_realtime_ns, 0);
  EXPECT_EQ(world.Make().verdict, "incomplete: the recorded duration is unknown");
  world.record.started_realtime_ns = started_ns;
  EXPECT_TRUE(world.Make().complete);
  world.record.stopped_realtime_ns = started_ns - 1;
  EXPECT_FALSE(world.Make().complete);
}

// The outcome of one worker, by what is known of it.
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

TEST(MakeCertificate, DistinguishesParts) {
  for (const PartCase& test : PartCases()) {
    SCOPED_TRACE(test.name);
    CertificateWorld world;
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

TEST(MakeCertificate, UnstartedCaptureLosesNothing) {
  CertificateWorld world;
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
  CertificateWorld world;
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
      Contains("5 files of the vendor's profiler are not stored: i-a_pid_1/a.neff (it changed), "
               "i-a_pid_1/b.ntff (it changed), i-a_pid_1/c.ntff (it changed) and 2 more"));
  EXPECT_TRUE(certificate.findings.empty());
}

TEST(MakeCertificate, ComparesEventsReadByAgent) {
  struct Case {
    uint64_t read;
    bool differs;
  };
  for (const Case& test : {Case{12, false}, Case{11, true}, Case{13, true}}) {
    SCOPED_TRACE(test.read);
    CertificateWorld world;
    world.Status(1, CaptureWorkerState::kComplete).events_read = test.read;
    // An event that no chunk could hold was read; one that the ring lost was not.
    world.Stream(1, 10,
                 {{.place = LossPlace::kDecode, .reason = LossReason::kLimit, .events = 2},
                  {.place = LossPlace::kRuntimeRing, .events = 50}});
    const Certificate certificate = world.Make();
    EXPECT_EQ(certificate.workers[0].events_read_differs, test.differs);
  }
}

TEST(MakeCertificate, SumsOfAgentDoNotRestart) {
  CertificateWorld world;
  world.Status(1, CaptureWorkerState::kComplete).events_read = UINT64_MAX;
  for (int i = 0; i < 2; ++i) {
    StreamRecord& stream = world.Stream(1, UINT64_MAX - 5);
    stream.gaps_count = UINT64_MAX - 5;
  }
  const Certificate certificate = world.Make();
  EXPECT_FALSE(certificate.workers[0].events_read_differs);
  EXPECT_EQ(certificate.workers[0].gaps, UINT64_MAX);
}

TEST(MakeCertificate, MismatchedSumsComeFirstAsDefect) {
  CertificateWorld world;
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

TEST(MakeCertificate, ProvisionalWhileRunning) {
  CertificateWorld world;
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

TEST(MakeCertificate, ShowsTheLongestGaps) {
  CertificateWorld world;
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
  CertificateWorld world;
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
  CertificateWorld world;
  for (uint32_t pid = 1; pid <= 100; ++pid) world.Status(pid, CaptureWorkerState::kRefused);
  const Certificate certificate = world.Make();
  EXPECT_EQ(certificate.workers.size(), 100u);
  ASSERT_EQ(certificate.findings.size(), limits::kCaptureWarningsMax);
  EXPECT_EQ(certificate.findings.back(), "and 37 more");
  EXPECT_EQ(certificate.verdict, "incomplete: 100 workers never took part");
}

// What a budget left out is told apart from what was lost: the capture is complete, with a note.
TEST(MakeCertificate, EventsOmittedByBudgetAreNoLoss) {
  CertificateWorld world;
  world.Status(1, CaptureWorkerState::kComplete).events_read = 20;
  world.record.workers.back().streams = 2;
  const std::string words =
      "without allocation events because the budget of 2 % of a processor is used up";
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
            "complete: every event that was recorded is stored; 1 worker omitted some to stay "
            "within the budget");
  EXPECT_THAT(
      certificate.notes,
      ElementsAre("i-a pid 1 recorded from 2025-11-21 04:40:01Z to 2025-11-21 04:40:09Z " + words));
}

// The ranks that framework files claim are compared with one another.

struct File {
  std::string name;
  int64_t rank = 0;
  int64_t world_size = 2;
  uint64_t first_ns = 100;
  uint64_t last_ns = 500;
};

class FileRanksTest : public ::testing::Test {
 protected:
  FileRanksTest() {
    world_.record.workers.push_back({.worker = {.instance_id = "i-a", .boot_id = "b"},
                                     .state = CaptureWorkerState::kComplete,
                                     .framework = true});
  }
  void Add(const File& file) {
    StreamRecord& stream = world_.Stream(0, 5);
    stream.identity.kind = StreamKind::kFramework;
    stream.identity.nc_idx = limits::kNoNcIdx;
    stream.identity.name = file.name;
    stream.first_timestamp_ns = file.first_ns;
    stream.last_timestamp_ns = file.last_ns;
    stream.evidence = {{RankSource::kFrameworkFile, file.rank, file.world_size, ""}};
    CaptureWorkerStatus& status = world_.record.workers.front();
    status.streams = world_.streams.size();
    status.events_read = status.events_stored = 5 * world_.streams.size();
  }

  CertificateWorld world_;
};

TEST_F(FileRanksTest, FilesOfDifferentRanksAgree) {
  Add({.name = "a", .rank = 0});
  Add({.name = "b", .rank = 1});
  const Certificate certificate = world_.Make();
  EXPECT_THAT(certificate.findings, IsEmpty());
  EXPECT_TRUE(certificate.complete);
}

TEST_F(FileRanksTest, ARankThatIsClaimedTwiceIsAFindingWithAllNames) {
  Add({.name = "engine0-rank0", .rank = 0});
  Add({.name = "engine0-rank1", .rank = 1, .first_ns = 600, .last_ns = 700});
  Add({.name = "engine1-rank0", .rank = 0, .first_ns = 500, .last_ns = 600});
  Add({.name = "engine1-rank1", .rank = 1, .first_ns = 650, .last_ns = 660});
  const Certificate certificate = world_.Make();
  EXPECT_THAT(certificate.findings,
              ElementsAre(AllOf(HasSubstr("2 ranks are contradicted"),
                                HasSubstr("rank 0 is claimed by 2 files at the same time: i-a "
                                          "engine0-rank0, i-a engine1-rank0"),
                                HasSubstr("rank 1 is claimed by 2 files"))));
  EXPECT_FALSE(certificate.complete);
}

TEST_F(FileRanksTest, ProfilesOfOneRankOneAfterTheOtherAgree) {
  Add({.name = "step10", .first_ns = 100, .last_ns = 200});
  Add({.name = "step20", .first_ns = 300, .last_ns = 400});
  EXPECT_THAT(world_.Make().findings, IsEmpty());
}

TEST_F(FileRanksTest, WorldSizesThatDifferAreAFinding) {
  Add({.name = "a", .rank = 0, .world_size = 2});
  Add({.name = "b", .rank = 1, .world_size = 4});
  Add({.name = "c", .rank = 2, .world_size = 4});
  Add({.name = "d", .rank = 3, .world_size = 0});
  EXPECT_THAT(world_.Make().findings,
              ElementsAre(HasSubstr("files report different world sizes: i-a a (2), i-a b (4)")));
}

TEST_F(FileRanksTest, FarMoreFilesAreCounted) {
  for (int i = 0; i < 300; ++i) Add({.name = std::to_string(i)});
  EXPECT_THAT(world_.Make().findings,
              Contains(AllOf(HasSubstr("claimed by 300 files"), HasSubstr("and 296 more"))));
}

}  // namespace
}  // namespace neurontrace
