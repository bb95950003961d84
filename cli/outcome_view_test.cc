// SPDX-License-Identifier: Apache-2.0
// The result of each worker, letter by letter, and every reason not to take part.
#include "cli/outcome_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/capture_view.h"

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

v1::CaptureWorkerStatus& AddWorker(v1::Capture& capture, uint32_t pid,
                                   v1::CaptureWorkerState state) {
  v1::CaptureWorkerStatus& worker = *capture.add_workers();
  worker.mutable_worker()->set_instance_id("i-0a");
  worker.mutable_worker()->set_pid(pid);
  worker.set_state(state);
  return worker;
}

v1::CaptureWorkerStatus& AddRecorded(v1::Capture& capture, uint32_t pid, int64_t offset_ns) {
  v1::CaptureWorkerStatus& worker = AddWorker(capture, pid, v1::CAPTURE_WORKER_STATE_COMPLETE);
  worker.set_events_read(1'234'567);
  worker.set_begun_realtime_ns(1'700'000'000'000'000'000);
  worker.set_begun_as_planned(true);
  worker.set_begin_offset_ns(offset_ns);
  return worker;
}

v1::Capture CaptureOf(v1::CaptureMode mode) {
  v1::Capture capture;
  capture.mutable_spec()->set_mode(mode);
  capture.set_state(v1::CAPTURE_STATE_COMPLETE);
  return capture;
}

TEST(FormatOutcome, FormatsExampleWorstFirst) {
  v1::Capture capture = CaptureOf(v1::CAPTURE_MODE_STREAM);
  capture.mutable_begin()->set_bound_ns(310'000);
  AddRecorded(capture, 101, -120'000);
  AddRecorded(capture, 102, 700'000).set_events_lost(12);
  AddRecorded(capture, 103, 0).set_joined_late(true);
  auto& refused = AddWorker(capture, 104, v1::CAPTURE_WORKER_STATE_REFUSED);
  refused.set_obstacle(v1::CAPTURE_OBSTACLE_OTHER_PROFILER);
  refused.set_detail("nrt_sys_trace_fetch_start says busy");
  WorkerRanks ranks;
  v1::Capture streams;
  for (const int64_t gid : {8, 9}) {
    v1::CaptureStream& stream = *streams.add_streams();
    *stream.mutable_identity()->mutable_worker() = capture.workers(0).worker();
    stream.set_worker_gid(gid);
  }
  ranks.Take(streams);
  EXPECT_EQ(FormatOutcome(capture, ranks, 64),
            "INSTANCE  PID  WORKER GIDS  OUTCOME   BEGAN                          EVENTS  LOST  "
            "REASON\n"
            "i-0a      104            -  refused   -                                   -     -  "
            "busy: other profiler (nrt_sys_trace_fetch_start says busy)\n"
            "i-0a      102            -  recorded  +700.0 us                   1,234,567    12\n"
            "i-0a      101          8-9  recorded  -120.0 us                   1,234,567     0\n"
            "i-0a      103            -  recorded  late, 2023-11-14 22:13:20Z  1,234,567     0\n");
  EXPECT_EQ(
      FormatOutcomeSummary(capture),
      "3 of 4 workers recorded (busy: other profiler: 1), 1 of them joined late\n"
      "began -120.0 us to +700.0 us from the planned moment, 820.0 us apart; their clocks are "
      "within 310.0 us\n");
  EXPECT_EQ(ExitCodeOf(capture), kExitIncomplete);
  EXPECT_THAT(FormatOutcome(capture, ranks, 2), HasSubstr("(2 further workers"));
}

TEST(FormatOutcome, NamesEveryObstacleAndEachMakesTheCaptureIncomplete) {
  const std::pair<v1::CaptureObstacle, const char*> obstacles[] = {
      {v1::CAPTURE_OBSTACLE_OTHER_PROFILER, "busy: other profiler"},
      {v1::CAPTURE_OBSTACLE_RUNTIME_TOO_OLD, "runtime too old"},
      {v1::CAPTURE_OBSTACLE_NO_TAP, "no tap"},
      {v1::CAPTURE_OBSTACLE_NOT_INITIALISED, "not initialised"},
      {v1::CAPTURE_OBSTACLE_AGENT_LOST, "agent lost"},
      {v1::CAPTURE_OBSTACLE_OTHER_CAPTURE, "other capture"},
      {v1::CAPTURE_OBSTACLE_NO_EVENT_TYPE, "no event type"},
      {v1::CAPTURE_OBSTACLE_RUNTIME_REFUSED, "runtime refused"},
      {v1::CAPTURE_OBSTACLE_NOT_ARMED, "not armed"},
      {v1::CAPTURE_OBSTACLE_ENDED, "ended"},
      {v1::CAPTURE_OBSTACLE_NO_ANSWER, "no answer"},
  };
  for (const auto& [obstacle, words] : obstacles) {
    v1::Capture capture = CaptureOf(v1::CAPTURE_MODE_STREAM);
    AddRecorded(capture, 101, 0);
    AddWorker(capture, 102, v1::CAPTURE_WORKER_STATE_REFUSED).set_obstacle(obstacle);
    EXPECT_THAT(FormatOutcome(capture, WorkerRanks(), 64), HasSubstr(words));
    EXPECT_THAT(FormatOutcomeSummary(capture),
                StartsWith("1 of 2 workers recorded (" + std::string(words) + ": 1)\n"));
    EXPECT_EQ(ExitCodeOf(capture), kExitIncomplete) << words;
  }
}

TEST(FormatOutcome, ReportsReachOfSnapshot) {
  v1::Capture capture = CaptureOf(v1::CAPTURE_MODE_SNAPSHOT);
  capture.mutable_spec()->set_last_ns(20'000'000'000);
  AddRecorded(capture, 101, 0).set_reaches_back_ns(20'500'000'000);
  EXPECT_THAT(FormatOutcomeSummary(capture), HasSubstr("\nreaches back 20.0 s\n"));
  EXPECT_EQ(ExitCodeOf(capture), kExitDone);
  AddRecorded(capture, 102, 100'000).set_reaches_back_ns(8'200'000'000);
  const std::string table = FormatOutcome(capture, WorkerRanks(), 64);
  EXPECT_LT(table.find("8.2 s"), table.find("20.5 s"));
  EXPECT_THAT(FormatOutcomeSummary(capture),
              HasSubstr("2 of 2 workers were collected\ncut 0.0 us to +100.0 us from"));
  EXPECT_THAT(FormatOutcomeSummary(capture),
              HasSubstr("reaches back at least 8.2 s of the 20.0 s requested: the rings of 1 of "
                        "2 workers held no more"));
  EXPECT_EQ(ExitCodeOf(capture), kExitIncomplete);
}

TEST(FormatOutcome, ReportsFirstExecution) {
  v1::Capture capture = CaptureOf(v1::CAPTURE_MODE_STREAM);
  capture.mutable_begin()->set_first_execution(4711);
  capture.mutable_begin()->set_last_execution(4730);
  auto& on_time = AddRecorded(capture, 101, 0);
  on_time.set_first_execution(4711);
  on_time.set_highest_first_execution(4711);
  on_time.set_lowest_newest_execution(4731);
  on_time.set_newest_execution(4732);
  AddRecorded(capture, 102, 0).set_first_execution(4712);
  EXPECT_THAT(FormatOutcome(capture, WorkerRanks(), 64), HasSubstr("4711 to 4730"));
  EXPECT_THAT(FormatOutcomeSummary(capture),
              HasSubstr("1 of 2 began at execution 4,711 on every core, to stop after 4,730\n"));
}

// The first core of the worker is on time and reaches the end, and hides neither of the others.
TEST(FormatOutcome, NoCoreIsHiddenBehindItsNeighbour) {
  v1::Capture capture = CaptureOf(v1::CAPTURE_MODE_STREAM);
  capture.mutable_spec()->set_at_execution(4711);
  capture.mutable_begin()->set_first_execution(4711);
  capture.mutable_begin()->set_last_execution(4730);
  auto& worker = AddRecorded(capture, 101, 0);
  worker.set_first_execution(4711);
  worker.set_highest_first_execution(4711);
  worker.set_lowest_newest_execution(4731);
  worker.set_newest_execution(4731);
  EXPECT_EQ(ExitCodeOf(capture), kExitDone);
  worker.set_highest_first_execution(4712);
  worker.set_lowest_newest_execution(4720);
  EXPECT_EQ(ExitCodeOf(capture), kExitIncomplete);
  EXPECT_THAT(FormatOutcome(capture, WorkerRanks(), 64), HasSubstr("4711-4712 to 4720-4730"));
  EXPECT_THAT(FormatOutcomeSummary(capture), HasSubstr("0 of 1 began at execution 4,711 on every"));
  worker.set_highest_first_execution(0);
  EXPECT_EQ(ExitCodeOf(capture), kExitIncomplete) << "nobody knows";
  EXPECT_THAT(FormatOutcome(capture, WorkerRanks(), 64), HasSubstr("4711-? to 4720-4730"));
  worker.set_highest_first_execution(4711);
  worker.set_cores_without_execution(1);
  EXPECT_EQ(ExitCodeOf(capture), kExitIncomplete);
  EXPECT_THAT(FormatOutcome(capture, WorkerRanks(), 64), HasSubstr("none on 1 core"));
}

// A capture of executions that nobody ran, or that were over when it was asked for, is not whole.
TEST(FormatOutcome, ACaptureByExecutionThatHasNoneFallsShort) {
  v1::Capture capture = CaptureOf(v1::CAPTURE_MODE_STREAM);
  capture.mutable_spec()->set_at_execution(5);
  capture.mutable_begin()->set_first_execution(5);
  capture.mutable_begin()->set_last_execution(24);
  auto& worker = AddRecorded(capture, 101, 0);
  worker.set_newest_execution(4'000);
  EXPECT_EQ(ExitCodeOf(capture), kExitIncomplete) << "they were past it";
  EXPECT_THAT(
      FormatOutcomeSummary(capture),
      HasSubstr("0 of 1 began at execution 5 on every core, to stop after 24; the newest seen is "
                "4,000\n"));
  worker.set_first_execution(6);
  EXPECT_EQ(ExitCodeOf(capture), kExitIncomplete);
  worker.set_joined_late(true);
  EXPECT_EQ(ExitCodeOf(capture), kExitDone);
  worker.set_joined_late(false);
  worker.set_first_execution(5);
  worker.set_highest_first_execution(5);
  EXPECT_EQ(ExitCodeOf(capture), kExitDone);

  capture.mutable_spec()->clear_at_execution();
  capture.mutable_spec()->set_at_next_execution(true);
  capture.clear_begin();
  worker.clear_first_execution();
  worker.clear_newest_execution();
  EXPECT_EQ(ExitCodeOf(capture), kExitIncomplete) << "there was never one";
  EXPECT_THAT(FormatOutcomeSummary(capture), HasSubstr("no execution to start at was seen"));
  capture.set_state(v1::CAPTURE_STATE_RECORDING);
  EXPECT_EQ(ExitCodeOf(capture), kExitDone) << "it may still come";
}

TEST(FormatCapture, ExplainsOnceHowToMakeWorkerRecord) {
  v1::Capture capture = CaptureOf(v1::CAPTURE_MODE_STREAM);
  v1::CaptureWorkerStatus& worker = AddWorker(capture, 101, v1::CAPTURE_WORKER_STATE_REFUSED);
  worker.set_obstacle(v1::CAPTURE_OBSTACLE_NO_TAP);
  worker.set_detail("start it with LD_PRELOAD");
  capture.add_warnings("worker 101 could not take part (no tap): start it with LD_PRELOAD");
  capture.mutable_certificate()->set_verdict("incomplete");
  capture.mutable_certificate()->add_findings("pid 101 was refused: start it with LD_PRELOAD");
  const std::string text = FormatCapture(capture, WorkerRanks(), CaptureDetail::kShort);
  EXPECT_THAT(text, HasSubstr("no tap (start it with LD_PRELOAD)\n"));
  EXPECT_THAT(text, HasSubstr("warning: worker 101 could not take part (no tap)\n"));
  EXPECT_THAT(text, HasSubstr("missing     pid 101 was refused\n"));
}

TEST(ExitCodeOf, ReportsUnstartedWorkers) {
  v1::Capture capture = CaptureOf(v1::CAPTURE_MODE_STREAM);
  EXPECT_EQ(ExitCodeOf(capture), kExitFailed) << "it matched nothing";
  AddWorker(capture, 101, v1::CAPTURE_WORKER_STATE_ARMED);
  capture.set_state(v1::CAPTURE_STATE_NOT_BEGUN);
  EXPECT_EQ(ExitCodeOf(capture), kExitFailed);
  EXPECT_EQ(FormatOutcomeSummary(capture), "0 of 1 worker recorded (armed: 1)\n");
  capture = CaptureOf(v1::CAPTURE_MODE_FLIGHT_RECORDER);
  capture.set_state(v1::CAPTURE_STATE_RECORDING);
  EXPECT_EQ(ExitCodeOf(capture), kExitIncomplete) << "it waits for workers";
  AddWorker(capture, 101, v1::CAPTURE_WORKER_STATE_RECORDING);
  EXPECT_EQ(ExitCodeOf(capture), kExitDone);
  EXPECT_EQ(FormatOutcomeSummary(capture), "1 of 1 worker keeps its rings\n");
}

TEST(FormatOutcome, NamesJobsWhereThereAreSeveralAndListsThemApart) {
  v1::Capture capture = CaptureOf(v1::CAPTURE_MODE_STREAM);
  v1::ListWorkersReply inventory;
  for (const uint32_t pid : {101, 102, 103}) {
    AddRecorded(capture, pid, 0);
    v1::WorkerInventory& worker = *inventory.add_workers();
    *worker.mutable_identity() = capture.workers(static_cast<int>(pid) - 101).worker();
    worker.set_job(pid == 102 ? "a" : "b");
    worker.add_cores()->add_rank_evidence()->set_worker_gid(104 - pid);
  }
  WorkerRanks ranks;
  ranks.Take(inventory);
  const std::string table = FormatOutcome(capture, ranks, 64);
  EXPECT_THAT(table, StartsWith("INSTANCE  PID  JOB  WORKER GIDS"));
  EXPECT_LT(table.find("102  a "), table.find("103  b "));
  EXPECT_LT(table.find("103  b "), table.find("101  b "));
}

TEST(FormatFrameworkTraces, ListsMissingTracesAndCountsAll) {
  v1::Capture capture = CaptureOf(v1::CAPTURE_MODE_STREAM);
  EXPECT_EQ(FormatFrameworkTraces(capture, 64), "");
  v1::CaptureWorkerStatus& files = AddWorker(capture, 0, v1::CAPTURE_WORKER_STATE_COMPLETE);
  files.set_framework(true);
  const auto add = [&files](uint32_t pid, v1::FrameworkTraceState state, const char* detail) {
    v1::FrameworkTrace& trace = *files.add_framework_traces();
    trace.mutable_worker()->set_instance_id("i-0a");
    trace.mutable_worker()->set_pid(pid);
    trace.set_framework("pytorch");
    trace.set_state(state);
    trace.set_detail(detail);
  };
  add(101, v1::FRAMEWORK_TRACE_STATE_FILE_SEEN, "");
  EXPECT_EQ(FormatFrameworkTraces(capture, 64), "1 of 1 framework trace seen\n");
  add(102, v1::FRAMEWORK_TRACE_STATE_BUSY, "in use");
  add(103, v1::FRAMEWORK_TRACE_STATE_NOT_LISTENING, "");
  EXPECT_EQ(FormatFrameworkTraces(capture, 1),
            "INSTANCE  PID  FRAMEWORK  TRACE  REASON\n"
            "i-0a      102  pytorch    busy   in use\n"
            "(and 1 further trace; captures show --wide has all)\n"
            "1 of 3 framework traces seen\n");
}

}  // namespace
}  // namespace neurontrace::cli
