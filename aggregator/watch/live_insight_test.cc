// SPDX-License-Identifier: Apache-2.0
// Goal: of a fleet's chunks as they are stored, the slow, hung or dead rank is named, once and
// nobody else, also by an aggregator that was restarted meanwhile. Time is advanced; the rule is
// the real one.
#include "aggregator/watch/live_insight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "aggregator/session/fake_session_environment.h"
#include "lib/base/fake_task_runner.h"
#include "lib/base/time_units.h"
#include "lib/trace/event_chunk.h"
#include "lib/trace/event_chunk_test_support.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr uint64_t kMillisecondNs = kNsPerSecond / 1'000;
constexpr uint64_t kStepNs = 100 * kMillisecondNs;
constexpr uint64_t kStepsPerChunk = 5;
constexpr uint32_t kRanks = 8;

class VerdictList final : public VerdictObserver {
 public:
  void OnVerdict(const LiveVerdict& verdict) override { verdicts.push_back(verdict); }
  std::vector<LiveVerdict> verdicts;
};

class LiveInsightTest : public testing::Test {
 protected:
  LiveInsightTest() {
    Restart();
    for (uint32_t rank = 0; rank < kRanks; ++rank) workers_[Stream(rank).worker] = {.job = "j"};
    ShowFleet();
  }
  // Makes another one, which has seen nothing.
  void Restart() {
    registry_ = std::make_unique<prometheus::Registry>();
    live_ =
        std::make_unique<LiveInsight>(LiveInsight::Deps{*registry_, clock_, clocks_, sequence_});
    live_->AddObserver(observer_);
    ShowFleet();
  }
  void ShowFleet() {
    for (auto& [worker, known] : workers_) {
      known.is_stored = true;
      const bool is_away = away_rank_ < kRanks && worker == Stream(away_rank_).worker;
      known.last_seen_ns = is_away ? 0 : clock_.MonotonicNs();
    }
    live_->SetView({{capture_, workers_}});
  }
  StreamIdentity Stream(uint32_t rank) const {
    StreamIdentity stream;
    stream.agent_id = "a-" + std::to_string(rank);
    stream.worker = {.instance_id = "i-" + std::to_string(rank), .boot_id = "b", .pid = 7};
    stream.kind = StreamKind::kNeuronCore;
    return stream;
  }
  static OwnedEvent Event(const std::string& type, Phase phase, uint64_t at_ns, uint64_t tracking,
                          uint64_t exec_id) {
    OwnedEvent event;
    event.event_type = type;
    event.phase = phase;
    event.present = FieldBit(Field::kTimestamp) | FieldBit(Field::kTrackingId);
    event.fields.timestamp_ns = at_ns;
    event.fields.tracking_id = tracking;
    if (phase == Phase::kStop) return event;
    event.keys = {{"exec_id", ValueType::kUint}, {"model_name", ValueType::kString}};
    event.values = {{.bits = exec_id, .text = ""}, {.bits = 0, .text = "llama"}};
    return event;
  }
  // The events of one execution: the slow rank enters the collective later, and all leave it at
  // once. With `hangs`, nobody leaves.
  std::vector<OwnedEvent> Execution(uint32_t rank, uint64_t step, bool hangs) const {
    const uint64_t begin = epoch_ns_ + step * kStepNs;
    const uint64_t noise = (step * 7 + rank * 13) % 11 * 20'000;
    const uint64_t enter = begin + (rank == slow_rank_ ? 60 : 40) * kMillisecondNs + noise;
    const auto span = [&](const std::string& type, uint64_t from, uint64_t to, uint64_t number,
                          std::vector<OwnedEvent>& events) {
      events.push_back(Event(type, Phase::kStart, from, step * 8 + number, step + 1));
      if (to != 0) events.push_back(Event(type, Phase::kStop, to, step * 8 + number, step + 1));
    };
    std::vector<OwnedEvent> events;
    span("nrt_execute", begin, hangs ? 0 : begin + 90 * kMillisecondNs, 0, events);
    span("kbl_exec_pre", begin + 1 * kMillisecondNs, begin + 2 * kMillisecondNs, 1, events);
    span("nc_exec_running", begin + 10 * kMillisecondNs, hangs ? 0 : begin + 80 * kMillisecondNs, 2,
         events);
    span("cc_running", enter, hangs ? 0 : begin + 80 * kMillisecondNs, 3, events);
    return events;
  }
  void Store(uint32_t rank, const std::vector<OwnedEvent>& events) {
    EventChunkBuilder builder;
    for (const OwnedEvent& event : events) ASSERT_TRUE(AppendTo(builder, event).ok());
    const EncodedColumns columns = builder.Finish();
    ReceivedChunk chunk;
    chunk.header.capture_id = capture_;
    chunk.header.stream = Stream(rank);
    chunk.header.sequence = sequence_number_[rank]++;
    chunk.header.event_count = columns.event_count;
    chunk.header.first_timestamp_ns = columns.first_timestamp_ns;
    chunk.header.last_timestamp_ns = columns.last_timestamp_ns;
    chunk.header.columns_bytes = static_cast<uint32_t>(columns.bytes.size());
    chunk.header.rank_evidence = {
        {.source = RankSource::kCommunicator, .worker_gid = rank, .world_size = kRanks}};
    chunk.columns = CompressColumns(columns.bytes);
    live_->OnStored(chunk);
  }
  // Lets the fleet work for so many chunks of half a second.
  void Work(int chunks) {
    for (int i = 0; i < chunks; ++i) {
      clock_.AdvanceNs(kStepsPerChunk * kStepNs);
      for (uint32_t rank = 0; rank < kRanks; ++rank) {
        if (rank == absent_rank_) continue;
        std::vector<OwnedEvent> events;
        for (uint64_t step = step_; step < step_ + kStepsPerChunk; ++step) {
          for (OwnedEvent& event : Execution(rank, step, false)) events.push_back(std::move(event));
        }
        Store(rank, events);
      }
      step_ += kStepsPerChunk;
      Judge();
    }
  }
  // Lets all but one rank wait in the next execution, for so many seconds.
  void Hang(uint32_t absent_rank, int seconds) {
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      if (rank != absent_rank) Store(rank, Execution(rank, step_, true));
    }
    for (int i = 0; i < seconds; ++i) {
      clock_.AdvanceNs(1'000 * kMillisecondNs);
      Judge();
    }
  }
  void Judge() {
    ShowFleet();
    live_->RunRound(std::chrono::seconds(0));
    sequence_.RunUntilIdle();
  }
  v1::InsightReport Report() const { return live_->Now("j").value(); }
  static std::vector<int64_t> RanksOf(const v1::Verdict& verdict) {
    std::vector<int64_t> ranks;
    for (const auto& core : verdict.suspects()) ranks.push_back(core.worker_gid());
    return ranks;
  }

  FakeClock clock_;
  FakeTaskRunner sequence_{clock_};
  UnalignedClocks clocks_{clock_};
  VerdictList observer_;
  CaptureId capture_ = *CaptureId::FromBytes(std::string(CaptureId::kBytes, 'c'));
  absl::flat_hash_map<WorkerIdentity, WorkerView> workers_;
  const uint64_t epoch_ns_ = clock_.RealtimeNs();
  uint32_t slow_rank_ = kRanks;
  uint32_t absent_rank_ = kRanks;
  uint32_t away_rank_ = kRanks;  // its agent is not connected
  uint64_t step_ = 0;
  std::array<uint64_t, kRanks> sequence_number_{};
  std::unique_ptr<prometheus::Registry> registry_;
  std::unique_ptr<LiveInsight> live_;
};

TEST_F(LiveInsightTest, NamesNobodyInAFleetInStep) {
  Work(40);
  EXPECT_EQ(Report().verdicts_size(), 0);
  EXPECT_EQ(Report().cores(), kRanks);
  EXPECT_EQ(Report().cores_judged(), kRanks);
  EXPECT_THAT(observer_.verdicts, IsEmpty());
}

TEST_F(LiveInsightTest, NamesTheSlowRankOnceAndNobodyElse) {
  slow_rank_ = 5;
  Work(150);  // over several windows
  ASSERT_EQ(Report().verdicts_size(), 1);
  EXPECT_THAT(RanksOf(Report().verdicts(0)), ElementsAre(5));
  ASSERT_THAT(observer_.verdicts, SizeIs(1));
  const LiveVerdict& verdict = observer_.verdicts[0];
  EXPECT_EQ(verdict.job, "j");
  ASSERT_THAT(verdict.suspects, SizeIs(1));
  EXPECT_EQ(verdict.suspects[0].worker_gid, 5);
  EXPECT_THAT(verdict.peers, SizeIs(kRanks - 1));
}

TEST_F(LiveInsightTest, NamesItAgainAfterARestart) {
  slow_rank_ = 5;
  Work(20);
  Restart();
  EXPECT_EQ(live_->Now("j").status().code(), absl::StatusCode::kNotFound);
  Work(20);
  ASSERT_EQ(Report().verdicts_size(), 1);
  EXPECT_THAT(RanksOf(Report().verdicts(0)), ElementsAre(5));
}

TEST_F(LiveInsightTest, NamesTheRankThatHasNotEntered) {
  Work(20);
  Hang(3, 6);
  ASSERT_EQ(Report().verdicts_size(), 1);
  EXPECT_EQ(Report().verdicts(0).kind(), v1::VERDICT_KIND_HANG_NOT_ENTERED);
  EXPECT_THAT(RanksOf(Report().verdicts(0)), ElementsAre(3));
  EXPECT_THAT(observer_.verdicts, SizeIs(1));
}

// The limit of a hang, a judgement, and what a hang must last to begin.
TEST_F(LiveInsightTest, NamesAHangSoonAfterItsLimit) {
  Work(20);
  Hang(3, 0);
  uint64_t waited_ns = 0;
  while (Report().verdicts().empty() && waited_ns < 10 * kNsPerSecond) {
    clock_.AdvanceNs(limits::kWatchJudgeMinNs);
    waited_ns += limits::kWatchJudgeMinNs;
    Judge();
  }
  EXPECT_GT(waited_ns, 2 * kNsPerSecond);
  EXPECT_LE(waited_ns, 3 * kNsPerSecond);
}

TEST_F(LiveInsightTest, ReportsWhichCallsAWatchDoesNotRecord) {
  for (auto& [worker, known] : workers_) known.records_allocations = false;
  Work(20);
  EXPECT_THAT(Report().warnings(), Contains(HasSubstr("allocations and frees")));
  EXPECT_THAT(Report().warnings(), Not(Contains(HasSubstr("tensor reads"))));
}

TEST_F(LiveInsightTest, AnotherRunHasAnotherBeginOfJudging) {
  Work(20);
  const uint64_t since_ns = Report().live_since_ns();
  EXPECT_NE(since_ns, 0u);
  EXPECT_LT(since_ns, Report().end_ns());
  Restart();
  Work(20);
  EXPECT_GT(Report().live_since_ns(), since_ns);
}

TEST_F(LiveInsightTest, NamesTheWorkerThatHasEnded) {
  Work(20);
  workers_.at(Stream(3).worker).has_ended = true;
  Hang(3, 6);
  ASSERT_EQ(Report().verdicts_size(), 1);
  EXPECT_EQ(Report().verdicts(0).kind(), v1::VERDICT_KIND_DEAD_WORKER);
  EXPECT_THAT(RanksOf(Report().verdicts(0)), ElementsAre(3));
}

TEST_F(LiveInsightTest, NamesThoseInsideWhereNoneLeaves) {
  Work(20);
  Hang(kRanks, 6);
  ASSERT_EQ(Report().verdicts_size(), 1);
  EXPECT_EQ(Report().verdicts(0).kind(), v1::VERDICT_KIND_HANG_INSIDE);
}

TEST_F(LiveInsightTest, RefusesWhoseAgentIsAwayAndJudgesTheOthers) {
  slow_rank_ = 6;
  Work(20);
  absent_rank_ = away_rank_ = 3;
  Work(20);
  const v1::InsightReport report = Report();
  ASSERT_EQ(report.refusals_size(), 1);
  EXPECT_EQ(report.refusals(0).reason(), "no-canary");
  ASSERT_EQ(report.refusals(0).cores_size(), 1);
  EXPECT_EQ(report.refusals(0).cores(0).instance_id(), "i-3");
  ASSERT_EQ(report.verdicts_size(), 1);
  EXPECT_THAT(RanksOf(report.verdicts(0)), ElementsAre(6));
  EXPECT_EQ(report.cores_judged(), kRanks - 1);
}

TEST_F(LiveInsightTest, DoesNotJudgeWhomAnotherCaptureRecords) {
  Work(20);
  workers_.at(Stream(3).worker).is_suspended = true;
  absent_rank_ = 3;
  Hang(3, 10);
  EXPECT_EQ(Report().verdicts_size(), 0);
  EXPECT_THAT(observer_.verdicts, IsEmpty());
}

TEST_F(LiveInsightTest, ReportsThatNothingHasArrived) {
  ShowFleet();
  const auto report = live_->Now("");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->text(), "Nothing was judged: the watch has received no events yet");
}

TEST_F(LiveInsightTest, ReadsNothingButWatches) {
  live_->SetView({});
  Work(2);
  live_->SetView({});
  EXPECT_EQ(live_->Now("").status().code(), absl::StatusCode::kFailedPrecondition);
  Work(2);
  EXPECT_EQ(live_->Now("other").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace neurontrace
