// SPDX-License-Identifier: Apache-2.0
// What a terminal shows while a capture continues, in windows of several sizes.
#include "cli/capture_progress.h"
#include "lib/base/time_units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace neurontrace::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr uint64_t kStartedNs = 1'700'000'000'000'000'000;

v1::Capture Recording(int workers) {
  v1::Capture capture;
  capture.set_state(v1::CAPTURE_STATE_RECORDING);
  capture.set_started_realtime_ns(kStartedNs);
  capture.mutable_begin()->set_reference_ns(kStartedNs + 100'000'000);
  capture.set_server_realtime_ns(kStartedNs + 100'000'000 + 10 * kNsPerSecond);
  capture.mutable_spec()->set_duration_ns(30 * kNsPerSecond);
  for (int i = 0; i < workers; ++i) {
    v1::CaptureWorkerStatus& worker = *capture.add_workers();
    worker.mutable_worker()->set_instance_id("i-0a");
    worker.mutable_worker()->set_pid(static_cast<uint32_t>(101 + i));
    worker.set_state(v1::CAPTURE_WORKER_STATE_RECORDING);
    worker.set_events_read(1'000);
    worker.set_bytes_read(2'048);
  }
  return capture;
}

// One second and so many events of each worker later.
void Advance(v1::Capture& capture, uint64_t events) {
  capture.set_server_realtime_ns(capture.server_realtime_ns() + kNsPerSecond);
  for (v1::CaptureWorkerStatus& worker : *capture.mutable_workers()) {
    worker.set_events_read(worker.events_read() + events);
    worker.set_bytes_read(worker.bytes_read() + 1'024);
  }
}

TEST(CaptureProgress, FormatsExample) {
  v1::Capture capture = Recording(2);
  auto& bound = *capture.add_clock_bounds();
  bound.set_instance_id("i-0a");
  bound.set_bound_ns(310'000);
  CaptureProgress progress;
  progress.Update(capture);
  Advance(capture, 500);
  progress.Update(capture);
  EXPECT_THAT(
      progress.Lines(WorkerRanks(), {.columns = 100, .rows = 24}, "Ctrl-C: stop"),
      ElementsAre("recording  11.0 s of 30.0 s, 19.0 s left  [#########---------------]",
                  "2 workers  0 lost  3,000 events (1,000/s)  6.0 KiB (2.0 KiB/s)",
                  "INSTANCE  PID  GIDS  STATE      EVENTS/S  LOST  EVENTS  SIZE     CLOCK WITHIN",
                  "i-0a      101     -  recording       500     0   1,500  3.0 KiB  310.0 us",
                  "i-0a      102     -  recording       500     0   1,500  3.0 KiB  310.0 us",
                  "Ctrl-C: stop"));
}

TEST(CaptureProgress, CountsFrameworkSourcesApart) {
  v1::Capture capture = Recording(3);
  capture.mutable_workers(0)->set_framework(true);
  CaptureProgress progress;
  progress.Update(capture);
  EXPECT_THAT(progress.Lines(WorkerRanks(), {.columns = 100, .rows = 24}, ""),
              Contains(StartsWith("2 workers, 1 framework source  0 lost")));
  capture.set_state(v1::CAPTURE_STATE_ARMING);
  progress.Update(capture);
  EXPECT_EQ(progress.Lines(WorkerRanks(), {.columns = 100, .rows = 24}, "")[0], "arming 0/2");
}

TEST(CaptureProgress, ShowsAStoreThatTakesNoData) {
  v1::Capture capture = Recording(1);
  v1::StoreProblem& problem = *capture.mutable_store_problem();
  problem.set_since_realtime_ns(capture.server_realtime_ns() - 12'000'000'000);
  problem.set_text("writing chunks: the disk is full (df)");
  problem.set_free_bytes(0);
  capture.mutable_workers(0)->set_events_read(1'500);
  capture.mutable_workers(0)->set_events_stored(500);
  CaptureProgress progress;
  progress.Update(capture);
  EXPECT_THAT(progress.Lines(WorkerRanks(), {.columns = 120, .rows = 24}, ""),
              Contains("store takes no data for 12.0 s, 1,000 events wait at agents, 0 B free: "
                       "writing chunks: the disk is full (df)"));
}

TEST(CaptureProgress, WaitsForTheExecutionThatItBeginsAt) {
  v1::Capture capture = Recording(2);
  capture.mutable_begin()->set_first_execution(4'711);
  capture.mutable_workers(0)->set_newest_execution(4'650);
  EXPECT_EQ(PhaseOf(capture), "waiting for execution 4,711");
  capture.mutable_workers(1)->set_newest_execution(4'711);
  EXPECT_EQ(PhaseOf(capture), "recording");
}

TEST(CaptureProgress, FitsTheWindowWithTheWorstFirst) {
  v1::Capture capture = Recording(40);
  capture.mutable_workers(37)->set_events_lost(5);
  auto& refused = *capture.mutable_workers(38);
  refused.set_state(v1::CAPTURE_WORKER_STATE_REFUSED);
  refused.set_obstacle(v1::CAPTURE_OBSTACLE_NO_TAP);
  CaptureProgress progress;
  progress.Update(capture);
  for (const size_t rows : {10, 24}) {
    const auto lines = progress.Lines(WorkerRanks(), {.columns = 40, .rows = rows}, "hint");
    EXPECT_LT(lines.size(), rows);
    for (const std::string& line : lines) EXPECT_LE(line.size(), 39u + 2) << "… has three bytes";
    EXPECT_THAT(lines[3], HasSubstr("139"));
    EXPECT_THAT(lines[4], HasSubstr("138"));
    EXPECT_THAT(lines[lines.size() - 2], AllOf(StartsWith("… and "), HasSubstr("(no prob")));
  }
  // No room at all: the phase at least.
  EXPECT_THAT(progress.Lines(WorkerRanks(), {.columns = 40, .rows = 2}, ""), SizeIs(2));
}

TEST(CaptureProgress, RowsThatFitKeepTheirPlacesInTheOrderOfJobsAndRanks) {
  v1::Capture capture = Recording(3);
  v1::CaptureWorkerStatus& files = *capture.add_workers();
  files.set_framework(true);
  files.mutable_worker()->set_instance_id("i-0a");
  v1::ListWorkersReply inventory;
  for (const int i : {0, 1, 2}) {
    v1::WorkerInventory& worker = *inventory.add_workers();
    *worker.mutable_identity() = capture.workers(i).worker();
    worker.set_job(i == 1 ? "a" : "b");
    worker.add_cores()->add_rank_evidence()->set_worker_gid(9 - i);
  }
  WorkerRanks ranks;
  ranks.Take(inventory);
  CaptureProgress progress;
  for (const bool is_lossy : {false, true}) {
    capture.mutable_workers(0)->set_events_lost(is_lossy ? 5 : 0);
    progress.Update(capture);
    const auto lines = progress.Lines(ranks, {.columns = 100, .rows = 24}, "");
    EXPECT_THAT(lines[3], HasSubstr("102"));
    EXPECT_THAT(lines[4], HasSubstr("103"));
    EXPECT_THAT(lines[5], HasSubstr("101"));
    EXPECT_THAT(lines[6], HasSubstr("framework"));
  }
}

TEST(CaptureProgress, ACoreThatFallsSilentComesBeforeThoseThatDoNot) {
  v1::Capture capture = Recording(3);
  CaptureProgress progress;
  progress.Update(capture);
  Advance(capture, 500);
  capture.mutable_workers(2)->set_events_read(1'000);
  progress.Update(capture);
  const auto lines = progress.Lines(WorkerRanks(), {.columns = 100, .rows = 8}, "");
  EXPECT_THAT(lines[3], HasSubstr("103"));
}

TEST(CaptureProgress, ListsAwaitedWorkersFirstWhileStopping) {
  v1::Capture capture = Recording(3);
  capture.set_state(v1::CAPTURE_STATE_STOPPING);
  capture.mutable_workers(0)->set_state(v1::CAPTURE_WORKER_STATE_COMPLETE);
  capture.mutable_workers(1)->set_state(v1::CAPTURE_WORKER_STATE_COMPLETE);
  CaptureProgress progress;
  progress.Update(capture);
  const auto lines = progress.Lines(WorkerRanks(), {.columns = 100, .rows = 8}, "");
  EXPECT_THAT(lines[0], StartsWith("storing the rest"));
  EXPECT_THAT(lines[3], HasSubstr("103"));
}

TEST(PhaseOf, FollowsTheCapture) {
  v1::Capture capture = Recording(2);
  EXPECT_EQ(PhaseOf(capture), "recording");
  capture.set_server_realtime_ns(kStartedNs + 20'000'000);
  EXPECT_EQ(PhaseOf(capture), "begins in 80 ms");
  capture.set_state(v1::CAPTURE_STATE_ARMING);
  capture.mutable_workers(0)->set_state(v1::CAPTURE_WORKER_STATE_ARMED);
  CaptureProgress progress;
  progress.Update(capture);
  EXPECT_EQ(progress.Lines(WorkerRanks(), {}, "").front(), "arming 1/2");
  capture.set_state(v1::CAPTURE_STATE_STOPPING);
  EXPECT_EQ(PhaseOf(capture), "storing the rest");
  // A plan on a timescale that is not the clock's says nothing about when.
  capture.mutable_begin()->set_reference_ns(17);
  EXPECT_EQ(BeginOf(capture), kStartedNs);
}

TEST(CutToColumns, CountsCharactersAndMarksTruncation) {
  EXPECT_EQ(CutToColumns("müller", 6), "müller");
  EXPECT_EQ(CutToColumns("müller", 5), "müll…");
  EXPECT_EQ(CutToColumns("müller", 1), "…");
  EXPECT_EQ(CutToColumns("müller", 0), "");
  EXPECT_EQ(CutToColumns("", 3), "");
}

}  // namespace
}  // namespace neurontrace::cli
