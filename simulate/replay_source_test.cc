// SPDX-License-Identifier: Apache-2.0
// Goal: what a fleet does reaches the streams of a capture, and orders are carried out as by an
// agent's other sources.
#include "simulate/replay_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <span>
#include <vector>

#include "agent/source/recording_sink.h"
#include "lib/base/clock.h"
#include "lib/base/fake_task_runner.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// Keeps what a source reports.
class KeepingListener final : public SourceListener {
 public:
  void OnWorker(const WorkerInfo& worker) override { workers[worker.identity.pid] = worker; }
  void OnWorkerGone(const WorkerIdentity& worker) override { gone.insert(worker.pid); }
  void OnCaptureWorker(const CaptureWorkerStatus& status) override {
    statuses[status.worker.pid] = status;
  }

  std::map<uint32_t, WorkerInfo> workers;  // by pid
  std::set<uint32_t> gone;
  std::map<uint32_t, CaptureWorkerStatus> statuses;
};

// One instance with two processes of two cores.
FleetPlan OneInstance() {
  FleetPlan plan;
  plan.dp = 2;
  plan.pp = 1;
  plan.tp = 2;
  plan.steps = 6;
  plan.cores_per_process = 2;
  plan.processes_per_instance = 2;
  return plan;
}

class ReplaySourceTest : public ::testing::Test {
 protected:
  explicit ReplaySourceTest(FleetPlan plan = OneInstance()) : plan_(std::move(plan)) {
    for (uint32_t rank = 0; rank < plan_.ranks(); ++rank) ranks_.push_back(rank);
    source_ = std::make_unique<ReplaySource>(
        ReplaySource::Deps{plan_, rows_, shapes_, host_, runner_, sink_, listener_, waiting_},
        ReplaySource::Identity{"agent", "boot", "job", ranks_});
    source_->Start();
  }

  // Plays the whole run, or the rest of it.
  void Play(uint32_t steps = UINT32_MAX) {
    for (uint32_t i = 0; i < steps && model_.RunStep(batches_); ++i) Deliver(model_.true_ns());
  }
  void Finish() {
    const uint64_t reached_ns = model_.true_ns();
    model_.Finish(batches_);
    Deliver(reached_ns);
  }
  void Deliver(uint64_t true_ns) {
    for (ReplayBatch& batch : batches_.TakeBatches(true_ns, false)) {
      waiting_ += batch.events.size();
      source_->Take(std::move(batch));
    }
  }
  void StopAndStore() {
    source_->Stop(id_, Source::kStopNow);
    sink_.StoreAll();
    clock_.AdvanceNs(200'000'000);
    runner_.RunUntilIdle();
  }
  uint64_t ChunkEvents() const {
    uint64_t events = 0;
    for (const auto& entry : sink_.entries) events += entry.chunk.header.event_count;
    return events;
  }

  // Returns how many rows the whole run has: one for each end of a span.
  uint64_t RowsOfRun() const {
    struct Counter final : FleetSink {
      void Take(std::span<const FleetEvent> events) override {
        for (const FleetEvent& event : events)
          rows += event.type == FleetEventType::kError || event.is_open ? 1 : 2;
      }
      uint64_t rows = 0;
    } counter;
    FleetModel model(plan_);
    while (model.RunStep(counter)) {
    }
    model.Finish(counter);
    return counter.rows;
  }

  const FleetPlan plan_;
  const CaptureId id_ = *CaptureId::FromBytes("0123456789abcdef");
  std::vector<uint32_t> ranks_;
  FakeClock clock_;
  FakeTaskRunner runner_{clock_};
  FleetRows rows_{plan_};
  const std::vector<CachedShape> shapes_ = MakeReplayShapes(rows_);
  ReplayHost host_{1, 0, {}};
  RecordingSink sink_;
  KeepingListener listener_;
  std::atomic<uint64_t> waiting_ = 0;
  FleetModel model_{plan_};
  ReplayBatches batches_{model_};
  std::unique_ptr<ReplaySource> source_;
};

TEST_F(ReplaySourceTest, ReportsWorkersWithTheRanksOfTheFleet) {
  ASSERT_EQ(listener_.workers.size(), 2u);
  const WorkerInfo& worker = listener_.workers.rbegin()->second;
  ASSERT_EQ(worker.cores.size(), 2u);
  EXPECT_EQ(worker.cores[1].nc_idx, 1u);
  EXPECT_EQ(worker.cores[1].rank_evidence[0].worker_gid, 3);
  EXPECT_EQ(worker.job, "job");
}

TEST_F(ReplaySourceTest, EveryRowIsInAChunk) {
  source_->ApplyOrder(SourceOrder::Start(id_, {}, {}));
  EXPECT_TRUE(source_->Records(id_));
  Play();
  Finish();
  StopAndStore();
  EXPECT_EQ(ChunkEvents(), RowsOfRun());
  EXPECT_EQ(source_->counts().rows, RowsOfRun());
  EXPECT_EQ(waiting_, 0u);
  EXPECT_TRUE(source_->IsFinished(id_));
  for (const auto& [pid, status] : listener_.statuses) {
    EXPECT_EQ(status.state, CaptureWorkerState::kComplete);
    EXPECT_EQ(status.events_stored, status.events_read);
    EXPECT_EQ(status.streams, 2u);
  }
}

TEST_F(ReplaySourceTest, RecordsWhatTheFilterSelectsAlone) {
  CaptureSpec spec;
  spec.filter.event_types = {"cc_running"};
  source_->ApplyOrder(SourceOrder::Start(id_, spec, {}));
  Play();
  StopAndStore();
  const std::vector<std::string> events = sink_.Events();
  ASSERT_FALSE(events.empty());
  for (const std::string& event : events) EXPECT_THAT(event, HasSubstr("cc_running"));
}

TEST_F(ReplaySourceTest, BatchesWaitForRoom) {
  source_->ApplyOrder(SourceOrder::Start(id_, {}, {}));
  sink_.has_room = false;
  Play(2);
  EXPECT_GT(waiting_, 0u);
  EXPECT_EQ(source_->counts().rows, 0u);
  // An order to stop does not lose what waits.
  source_->Stop(id_, Source::kStopNow);
  EXPECT_FALSE(source_->IsFinished(id_));
  sink_.has_room = true;
  clock_.AdvanceNs(100'000'000);
  runner_.RunUntilIdle();
  EXPECT_EQ(waiting_, 0u);
  EXPECT_EQ(ChunkEvents(), source_->counts().rows);
  EXPECT_GT(ChunkEvents(), 0u);
}

TEST_F(ReplaySourceTest, IsArmedUntilItBegins) {
  source_->ApplyOrder(SourceOrder::Arm(id_, {}, {}));
  EXPECT_EQ(listener_.statuses.begin()->second.state, CaptureWorkerState::kArmed);
  Play(1);
  EXPECT_EQ(source_->counts().rows, 0u);
  source_->ApplyOrder(SourceOrder::Begin(id_, {}));
  Play(1);
  EXPECT_GT(source_->counts().rows, 0u);
}

TEST_F(ReplaySourceTest, RefusesWhatItDoesNotSimulate) {
  CaptureSpec spec;
  spec.mode = CaptureMode::kFlightRecorder;
  source_->ApplyOrder(SourceOrder::Start(id_, spec, {}));
  const CaptureWorkerStatus& status = listener_.statuses.begin()->second;
  EXPECT_EQ(status.state, CaptureWorkerState::kRefused);
  EXPECT_EQ(status.obstacle, CaptureObstacle::kRuntimeRefused);
  EXPECT_THAT(status.detail, HasSubstr("no rings"));
  source_->Stop(id_, Source::kStopNow);
  EXPECT_TRUE(source_->IsFinished(id_));
}

TEST_F(ReplaySourceTest, AForgottenCaptureTakesNothing) {
  source_->ApplyOrder(SourceOrder::Start(id_, {}, {}));
  source_->Forget(id_);
  Play(1);
  EXPECT_EQ(source_->counts().rows, 0u);
  EXPECT_TRUE(source_->IsFinished(id_));
}

class ReplayFaultsTest : public ReplaySourceTest {
 protected:
  static FleetPlan Faults() {
    FleetPlan plan = OneInstance();
    plan.faults = {*ParsePlannedFault("dead-worker@1+80-100")};
    plan.holes = {*ParsePlannedHole("losses@0-0+20-60"),
                  *ParsePlannedHole("late-agent@1-1+50-100")};
    return plan;
  }
  ReplayFaultsTest() : ReplaySourceTest(Faults()) {}
};

TEST_F(ReplayFaultsTest, LossesAreRecordsWithTheirNumber) {
  source_->ApplyOrder(SourceOrder::Start(id_, {}, {}));
  Play();
  Finish();
  StopAndStore();
  uint64_t lost = 0;
  for (const Loss& loss : sink_.Losses()) {
    EXPECT_EQ(loss.place, LossPlace::kRuntimeRing);
    EXPECT_LT(loss.first_timestamp_ns, loss.last_timestamp_ns);
    lost += loss.events;
  }
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(lost, model_.LostSoFar(0).events);
  EXPECT_EQ(lost, source_->counts().losses);
}

TEST_F(ReplayFaultsTest, ASilentRankNeverEnds) {
  source_->ApplyOrder(SourceOrder::Start(id_, {}, {}));
  Play();
  Finish();
  StopAndStore();
  EXPECT_TRUE(source_->is_silent());
  EXPECT_FALSE(source_->IsFinished(id_));
  std::set<uint32_t> ended;
  for (const auto& entry : sink_.entries) {
    const ChunkHeader& header = entry.chunk.header;
    if (header.end_of_stream) ended.insert(header.rank_evidence[0].worker_gid);
  }
  EXPECT_THAT(ended, UnorderedElementsAre(0, 2, 3));
}

TEST_F(ReplayFaultsTest, ADeadWorkerIsGoneAndItsPartLost) {
  source_->ApplyOrder(SourceOrder::Start(id_, {}, {}));
  Play();
  Finish();
  const uint32_t pid = listener_.workers.rbegin()->first;
  EXPECT_THAT(listener_.gone, UnorderedElementsAre(pid));
  EXPECT_EQ(listener_.statuses[pid].state, CaptureWorkerState::kLost);
  EXPECT_EQ(listener_.statuses.begin()->second.state, CaptureWorkerState::kRecording);
}

}  // namespace
}  // namespace neurontrace
