// SPDX-License-Identifier: Apache-2.0
// One worker with a fake tap, from greeting to the last receipt.
#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/source/neuron/tap_source.h"
#include "agent/source/neuron/tap_source_fixture.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST_F(TapSourceTest, RegistersWorkerWithFacts) {
  Connect();
  ASSERT_EQ(listener_.workers.size(), 1u);
  const WorkerInfo& info = listener_.workers.begin()->second;
  EXPECT_EQ(info.identity.instance_id, "i-0abc");
  EXPECT_EQ(info.identity.boot_id, "boot");
  EXPECT_EQ(info.identity.pid, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(info.identity.start_time_ticks, 98765u);
  EXPECT_EQ(info.identity.container_id, std::string(64, 'a'));
  EXPECT_FALSE(info.pid_claimed);
  EXPECT_EQ(info.command, "python") << "arguments are reported where that is asked for";
  EXPECT_EQ(info.job, "4711");
  EXPECT_EQ(info.runtime_version, "2.31.24.0");
  EXPECT_EQ(info.state, WorkerState::kIdle);
  Pass(300);
  const WorkerInfo& resolved = listener_.workers.begin()->second;
  ASSERT_EQ(resolved.cores.size(), 4u);
  EXPECT_EQ(resolved.cores[1].rank_evidence[0].worker_gid, 33);
}

TEST_F(TapSourceTest, RecordsFromStartToStop) {
  Connect();
  StartAndRecord();
  EXPECT_EQ(status().state, CaptureWorkerState::kRecording);
  tap_.WriteDocument(Document(0, 0, 3), capture_);
  tap_.WriteDocument(Document(1, 0, 2), capture_);
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_EQ(status().state, CaptureWorkerState::kStopping);
  AnswerStop();
  Pass(300);
  EXPECT_FALSE(source_->IsFinished(capture_));
  EXPECT_LT(tap_.read_pos(), tap_.write_pos());
  sink_.StoreAll();
  Pass(300);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(tap_.read_pos(), tap_.write_pos());
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
  EXPECT_EQ(status().events_read, 5u);
  EXPECT_EQ(status().events_stored, 5u);
  EXPECT_EQ(status().events_lost, 0u);
  EXPECT_EQ(status().streams, 2u);
  EXPECT_THAT(sink_.Events(),
              ElementsAre(Event(0, 0), Event(0, 1), Event(0, 2), Event(1, 0), Event(1, 1)));
  for (const auto& entry : sink_.entries) EXPECT_TRUE(entry.chunk.header.end_of_stream);
}

TEST_F(TapSourceTest, ResolvesTheFilterAgainstTheRuntimesTypes) {
  Connect();
  CaptureSpec spec;
  spec.filter.event_types = {"hardware", "^cc_running"};
  spec.selection.neuron_cores = {1, 3};
  spec.retention.ring_events_per_core = 2048;
  source_->ApplyOrder(SourceOrder::Start(capture_, spec, {}));
  const auto command = tap_.ReadCommand();
  ASSERT_TRUE(command);
  EXPECT_EQ(command->capture_id, capture_);
  EXPECT_EQ(command->start.max_events_per_nc, 2048u);
  EXPECT_EQ(command->start.nc_bitmap[0], 0b1010u);
  EXPECT_EQ(command->start.event_rule, static_cast<uint32_t>(TapEventRule::kOnlyThese));
  EXPECT_THAT(command->names, ElementsAre("nc_exec_running"));
}

TEST_F(TapSourceTest, FiltersEventsThatRuntimeDidNotFilter) {
  Connect();
  CaptureSpec spec;
  spec.filter.event_types = {"^nrt_execute"};
  source_->ApplyOrder(SourceOrder::Start(capture_, spec, {}));
  tap_.WriteStarted(capture_);
  tap_.WriteDocument(Document(0, 0, 3), capture_);
  runner_.RunUntilIdle();
  Pass(20);
  EXPECT_EQ(metrics_.events_decoded.load(), 3u);
  EXPECT_EQ(metrics_.events_filtered.load(), 3u);
}

TEST_F(TapSourceTest, SkipsUnselectedWorkers) {
  Connect();
  CaptureSpec spec;
  spec.selection.job = "another";
  source_->ApplyOrder(SourceOrder::Start(capture_, spec, {}));
  EXPECT_FALSE(tap_.ReadCommand());
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_TRUE(source_->IsFinished(capture_));
}

TEST_F(TapSourceTest, BeginsNothingForACaptureThatIsOver) {
  Connect();
  source_->ApplyOrder(SourceOrder::Finish(capture_, {}, {}, std::nullopt));
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_FALSE(tap_.ReadCommand());
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_TRUE(listener_.statuses.empty());
}

TEST_F(TapSourceTest, HasAWorkerJoinThatComesLate) {
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, {}));
  Connect();
  const auto command = tap_.ReadCommand();
  ASSERT_TRUE(command);
  EXPECT_EQ(command->type, TapMessageType::kStart);
  EXPECT_EQ(status().state, CaptureWorkerState::kStarting);
}

// A tap tells that the runtime is up a moment before it has asked it for its event types.
TEST_F(TapSourceTest, WaitsForTheEventTypesOfARuntimeThatHasJustComeUp) {
  tap_.SetFacts({{"tap.state", "not initialised"}});
  tap_.SetState(TapState::kIdle);
  CaptureSpec spec;
  spec.filter.event_types = {"^nrt_tensor_free"};
  source_->ApplyOrder(SourceOrder::Start(capture_, spec, {}));
  Connect();
  EXPECT_FALSE(tap_.ReadCommand());
  EXPECT_EQ(status().obstacle, CaptureObstacle::kNotInitialised);
  tap_.SetFacts({{"tap.state", "idle"}, {"runtime.event_types", "nrt_execute,nrt_tensor_free"}});
  tap_.Answer(TapMessageType::kStart, TapResult::kNone, CaptureId());
  Deliver();
  Pass(3'000);
  const auto command = tap_.ReadCommand();
  ASSERT_TRUE(command);
  EXPECT_EQ(command->type, TapMessageType::kStart);
  EXPECT_THAT(command->names, ElementsAre("nrt_tensor_free"));
}

TEST_F(TapSourceTest, DescribesWhyWorkerDoesNotRecord) {
  tap_.SetState(TapState::kBusyOtherProfiler);
  Connect();
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, {}));
  tap_.Answer(TapMessageType::kStart, TapResult::kAccepted, capture_, "nrt_inspect is on");
  Deliver();
  EXPECT_EQ(status().state, CaptureWorkerState::kRefused);
  EXPECT_THAT(status().detail, HasSubstr("another profiler is active"));
  EXPECT_THAT(status().detail, HasSubstr("nrt_inspect is on"));
  tap_.SetState(TapState::kStreaming);
  tap_.Answer(TapMessageType::kStart, TapResult::kNone, capture_);
  Deliver();
  EXPECT_EQ(status().state, CaptureWorkerState::kRecording);
}

TEST_F(TapSourceTest, FinishesACaptureThatAWorkerRefused) {
  tap_.SetState(TapState::kRuntimeTooOld);
  Connect();
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, {}));
  ASSERT_TRUE(tap_.ReadCommand());
  tap_.Answer(TapMessageType::kStart, TapResult::kUnsupported, capture_);
  Deliver();
  EXPECT_EQ(status().state, CaptureWorkerState::kRefused);
  source_->Stop(capture_, Source::kStopNow);
  tap_.Answer(TapMessageType::kStop, TapResult::kNotRunning, capture_);
  Deliver();
  Pass(300);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(status().state, CaptureWorkerState::kRefused);
  EXPECT_TRUE(sink_.entries.empty());
}

TEST_F(TapSourceTest, TurnsHolesIntoLosses) {
  Connect();
  StartAndRecord();
  tap_.WriteDocument(Document(0, 5, 2), capture_);   // 0 to 4 were overwritten (1 to 4 are sure)
  tap_.WriteDocument(Document(0, 10, 1), capture_);  // 7 to 9 were
  source_->Stop(capture_, Source::kStopNow);
  AnswerStop();
  Pass(300);
  EXPECT_EQ(LostEvents(LossPlace::kRuntimeRing), 4u + 3u);
}

TEST_F(TapSourceTest, CountsTheRestOfAMalformedDocument) {
  Connect();
  StartAndRecord();
  const std::string whole = Document(2, 0, 3);
  tap_.WriteDocument(std::string_view(whole).substr(0, whole.size() - 40), capture_, 2);
  source_->Stop(capture_, Source::kStopNow);
  AnswerStop();
  Pass(300);
  EXPECT_EQ(sink_.Events().size(), 2u);
  ASSERT_EQ(sink_.Losses().size(), 1u);
  EXPECT_EQ(sink_.Losses()[0].place, LossPlace::kDecode);
  EXPECT_EQ(sink_.Losses()[0].reason, LossReason::kMalformed);
  EXPECT_TRUE(sink_.Losses()[0].events_unknown);
  EXPECT_THAT(sink_.Losses()[0].detail, HasSubstr("at byte "));
}

// The tap fetches no other cores, so only a runtime that mixes them up shows this.
TEST_F(TapSourceTest, ErrorsOfUnselectedCoresAreNoLoss) {
  Connect();
  CaptureSpec spec;
  spec.selection.neuron_cores = {1};
  source_->ApplyOrder(SourceOrder::Start(capture_, spec, {}));
  ASSERT_TRUE(tap_.ReadCommand());
  tap_.SetState(TapState::kStreaming);
  tap_.WriteStarted(capture_);
  tap_.Answer(TapMessageType::kStart, TapResult::kOk, capture_);
  // Its text is too long to be recorded.
  const auto unfit = [](int core, int number) {
    return R"({"event_type":"nrt_execute","phase":"start","nc_idx":)" + std::to_string(core) +
           R"(,"nc_local_id":)" + std::to_string(number) + R"(,"timestamp_ns":5,"data":{"s":")" +
           std::string(limits::kStringBytesMax + 1, 'x') + R"("}})";
  };
  tap_.WriteDocument(R"({"events":[)" + Event(1, 0) + "," + unfit(1, 1) + "]}", capture_, 1);
  tap_.WriteDocument(R"({"events":[)" + Event(2, 0) + "," + unfit(2, 3) + "," + Event(2, 9) + "]}",
                     capture_, 2);
  tap_.WriteDocument(R"({"events":[)" + Event(2, 10), capture_, 2);  // ends in the middle
  Deliver();
  source_->Stop(capture_, Source::kStopNow);
  AnswerStop();
  Pass(300);
  EXPECT_EQ(sink_.Events().size(), 1u);
  ASSERT_EQ(sink_.Losses().size(), 1u);
  EXPECT_EQ(sink_.Losses()[0].place, LossPlace::kDecode);
  EXPECT_EQ(sink_.Losses()[0].events, 1u) << "the one of core 1";
  EXPECT_EQ(metrics_.documents_malformed.load(), 1u);
}

TEST_F(TapSourceTest, TakesRanksFromEvents) {
  Connect();
  StartAndRecord();
  tap_.WriteDocument(R"({"events":[)" + Event(2, 0, -1) + "]}", capture_);
  tap_.WriteDocument(R"({"events":[)" + Event(2, 1, 34) + "]}", capture_);
  Deliver();
  Pass(1000);
  ASSERT_FALSE(sink_.entries.empty());
  EXPECT_THAT(sink_.entries.back().chunk.header.rank_evidence,
              ElementsAre(RankEvidence{RankSource::kEvent, 34, 0, ""}));
  EXPECT_EQ(listener_.workers.begin()->second.cores[2].rank_evidence[0].worker_gid, 34);
}

TEST_F(TapSourceTest, LeavesTheRingAloneWhileTheQueueIsFull) {
  Connect();
  StartAndRecord();
  sink_.has_room = false;
  tap_.WriteDocument(Document(0, 0, 3), capture_);
  Pass(1000);
  EXPECT_EQ(metrics_.documents.load(), 0u);
  EXPECT_GT(metrics_.reads_waiting.load(), 0u);
  sink_.has_room = true;
  Pass(300);
  EXPECT_EQ(metrics_.documents.load(), 1u);
}

TEST_F(TapSourceTest, AsksToBeWokenOnlyWhenThereIsNothingToRead) {
  Connect();
  StartAndRecord();
  Pass(50);
  EXPECT_TRUE(tap_.TakeWakeRequest());
}

TEST_F(TapSourceTest, KeepsDataOfDeadWorker) {
  Connect();
  StartAndRecord();
  tap_.WriteDocument(Document(0, 0, 3), capture_);
  tap_.HangUp();
  SetProcessAlive(false);
  Deliver();
  Pass(600);
  EXPECT_EQ(status().state, CaptureWorkerState::kLost);
  EXPECT_EQ(listener_.gone, 1);
  EXPECT_THAT(sink_.Events(), ElementsAre(Event(0, 0), Event(0, 1), Event(0, 2)));
  ASSERT_FALSE(sink_.Losses().empty());
  EXPECT_TRUE(sink_.Losses()[0].events_unknown);
  const auto end = std::find_if(sink_.entries.begin(), sink_.entries.end(),
                                [](const auto& entry) { return entry.chunk.header.end_of_stream; });
  ASSERT_NE(end, sink_.entries.end());
  EXPECT_FALSE(end->chunk.header.losses.empty()) << "told before the core's stream has ended";
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_FALSE(source_->IsFinished(capture_));
  sink_.StoreAll();
  Pass(300);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(metrics_.workers.load(), 0u);
}

TEST_F(TapSourceTest, AStreamThatWasGivenUpMakesItsWorkerLost) {
  Connect();
  StartAndRecord();
  tap_.WriteDocument(Document(0, 0, 3), capture_);
  source_->Stop(capture_, Source::kStopNow);
  AnswerStop();
  Pass(300);
  ASSERT_FALSE(sink_.entries.empty());
  for (size_t i = 0; i < sink_.entries.size(); ++i) {
    sink_.Answer(i, {ChunkSink::Fate::kLost, "refused again and again", true});
  }
  Pass(300);
  EXPECT_TRUE(source_->IsFinished(capture_)) << "nothing can wedge it";
  EXPECT_EQ(status().state, CaptureWorkerState::kLost);
  EXPECT_THAT(status().detail, HasSubstr("a stream was abandoned"));
}

TEST_F(TapSourceTest, DistinguishesExitFromDeath) {
  Connect();
  StartAndRecord();
  tap_.WriteDocument(Document(0, 0, 3), capture_);
  tap_.WriteStopped(capture_, TapStopReason::kProcessExit);
  tap_.SetState(TapState::kExited);
  tap_.HangUp();
  Deliver();
  Pass(600);
  sink_.StoreAll();
  Pass(600);
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
  EXPECT_TRUE(sink_.Losses().empty());
  EXPECT_EQ(status().events_stored, 3u);
}

TEST_F(TapSourceTest, GivesUpOnATapThatDoesNotAnswerStop) {
  Connect();
  StartAndRecord();
  tap_.WriteDocument(Document(0, 0, 1), capture_);
  source_->Stop(capture_, Source::kStopNow);
  Pass(9'000);
  EXPECT_FALSE(sink_.entries.back().chunk.header.end_of_stream);
  Pass(3'000);
  EXPECT_TRUE(sink_.entries.back().chunk.header.end_of_stream);
  sink_.StoreAll();
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_THAT(sink_.Losses().back().detail, HasSubstr("did not answer"));
}

TEST_F(TapSourceTest, StopsACaptureThatIsForgotten) {
  Connect();
  StartAndRecord();
  source_->Forget(capture_);
  const auto command = tap_.ReadCommand();
  ASSERT_TRUE(command);
  EXPECT_EQ(command->type, TapMessageType::kStop);
  tap_.WriteDocument(Document(0, 0, 1), capture_);
  Pass(300);
  EXPECT_EQ(tap_.read_pos(), tap_.write_pos()) << "its records are thrown away";
  EXPECT_TRUE(source_->IsFinished(capture_));
}

// Counts what is said of workers.
class CountingWatch final : public WorkerWatch {
 public:
  bool BeginDocument(const WorkerIdentity&, const std::string&, uint64_t) override {
    ++documents;
    return true;
  }
  void OnEvent(const NrtEvent&) override {}
  void OnTraceEdge(const WorkerIdentity&) override {}
  void OnPolled(const WorkerIdentity&, bool) override {}
  void OnWorkerDied(const WorkerIdentity&, const std::string&) override { ++died; }
  void OnWorkerRemoved(const WorkerIdentity&) override { ++gone; }
  int documents = 0;
  int died = 0;
  int gone = 0;
};

// Its ring is read on after its death, and who looks on has forgotten it by then.
TEST_F(TapSourceTest, ReportsNothingAboutRemovedWorker) {
  CountingWatch watch;
  source_->SetWatch(watch);
  Connect();
  StartAndRecord();
  tap_.WriteDocument(Document(0, 0, 2), capture_);
  Pass(300);
  EXPECT_EQ(watch.documents, 1);
  sink_.has_room = false;
  tap_.WriteDocument(Document(0, 2, 2), capture_);
  tap_.HangUp();
  SetProcessAlive(false);
  Deliver();
  Pass(600);
  EXPECT_EQ(watch.died, 1);
  EXPECT_EQ(watch.gone, 1);
  sink_.has_room = true;
  Pass(600);
  EXPECT_EQ(metrics_.documents.load(), 2u);
  EXPECT_EQ(watch.documents, 1);
}

// A capture of a namespace takes the worker once the kubelet says that it is of it.
TEST_F(TapSourceTest, APodIsAFactOfItsWorkersAndSelectsThem) {
  CaptureSpec spec;
  spec.selection.job_facts = {{"namespace", "training"}};
  source_->ApplyOrder(SourceOrder::Start(capture_, spec, {}));
  Connect();
  Pass(300);
  EXPECT_FALSE(tap_.ReadCommand());
  ASSERT_EQ(source_->SeenWorkers().size(), 1u);
  const WorkerIdentity worker = source_->SeenWorkers()[0];
  source_->SetPod(worker.pid, worker.start_time_ticks + 1, WorkerPod{"training", "llama-0"});
  Pass(300);
  EXPECT_FALSE(tap_.ReadCommand()) << "another process";
  source_->SetPod(worker.pid, worker.start_time_ticks, WorkerPod{"training", "llama-0", "main"});
  Pass(300);
  const auto command = tap_.ReadCommand();
  ASSERT_TRUE(command);
  EXPECT_EQ(command->type, TapMessageType::kStart);
  const KeyValue user{"uid", std::to_string(getuid())};
  EXPECT_THAT(listener_.workers[worker].job_facts,
              ElementsAre(KeyValue{"container", "main"}, KeyValue{"namespace", "training"},
                          KeyValue{"pod", "llama-0"}, KeyValue{"slurm", "4711"}, user));
  source_->SetPod(worker.pid, worker.start_time_ticks, std::nullopt);
  Pass(300);
  EXPECT_THAT(listener_.workers[worker].job_facts, ElementsAre(KeyValue{"slurm", "4711"}, user));
}

TEST_F(TapSourceTest, SendsRankReportsWithChunks) {
  guesses_ = true;
  Connect();
  StartAndRecord();
  tap_.WriteDocument(Document(1, 1, 5), capture_, 1);
  Pass(2'000);
  ASSERT_FALSE(sink_.entries.empty());
  const ChunkHeader& header = sink_.entries.back().chunk.header;
  ASSERT_THAT(header.rank_evidence, SizeIs(1));
  EXPECT_TRUE(header.rank_evidence[0].guessed);
  ASSERT_THAT(header.remarks, SizeIs(1));
  EXPECT_EQ(header.remarks[0].kind, RemarkKind::kRankGuessed);
  EXPECT_EQ(header.remarks[0].count, 1u);
}

// Goal: where there is room for one reader a turn, a buffer that fills fast does not overflow, and
// those that fill slowly are read all the same.

std::vector<size_t> Indexes(const std::vector<WaitingReader>& order) {
  std::vector<size_t> indexes;
  for (const WaitingReader& reader : order) indexes.push_back(reader.index);
  return indexes;
}

TEST(ReadingOrderTest, TheSoonestFullComesFirst) {
  EXPECT_EQ(Indexes(ReadingOrder({{0, 30, 5}, {1, 10, 4}, {2, 20, 3}}, 7)),
            (std::vector<size_t>{1, 2, 0}));
  EXPECT_TRUE(ReadingOrder({}, 8).empty());
}

TEST(ReadingOrderTest, EverySecondTurnStartsWithLongestWaiting) {
  EXPECT_EQ(Indexes(ReadingOrder({{0, 30, 2}, {1, 10, 4}, {2, 20, 3}}, 8)),
            (std::vector<size_t>{0, 1, 2}));
}

TEST(ReadingOrderTest, ALoudWorkerNeitherOverflowsNorStarvesTheOthers) {
  constexpr size_t kWorkers = 16;
  constexpr uint64_t kBufferBytes = 32 << 20;
  constexpr uint64_t kReadBytes = 2 << 20;       // the sink has room for this much a turn
  std::vector<uint64_t> rate(kWorkers, 20'000);  // bytes a turn
  rate[9] = 50 * rate[0];
  std::vector<uint64_t> waiting(kWorkers, kBufferBytes / 2);
  std::vector<uint64_t> last_turn(kWorkers, 0);
  uint64_t longest_wait = 0;
  for (uint64_t turn = 1; turn < 5'000; ++turn) {
    std::vector<WaitingReader> readers;
    for (size_t i = 0; i < kWorkers; ++i) {
      waiting[i] += rate[i];
      ASSERT_LE(waiting[i], kBufferBytes) << "worker " << i << " in turn " << turn;
      readers.push_back({i, (kBufferBytes - waiting[i]) / rate[i], last_turn[i]});
    }
    const size_t first = ReadingOrder(readers, turn).front().index;
    waiting[first] -= std::min(waiting[first], kReadBytes);
    last_turn[first] = turn;
    for (const uint64_t last : last_turn) longest_wait = std::max(longest_wait, turn - last);
  }
  EXPECT_LE(longest_wait, 2 * kWorkers);
}

}  // namespace
}  // namespace neurontrace
