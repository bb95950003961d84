// SPDX-License-Identifier: Apache-2.0
// Agents, connections and taps that come and go.
#include "agent/source/neuron/tap_source.h"

#include "agent/source/neuron/tap_source_fixture.h"
#include "lib/trace/stream_cursor.h"

namespace neurontrace {
namespace {

using ::testing::SizeIs;

class TapSourceRestartTest : public TapSourceTest {
 protected:
  // Stops the capture, which cannot finish until the tap has connected again and stopped.
  void StopBeforeTheTapReturns() {
    source_->Stop(capture_, Source::kStopNow);
    Pass(4'000);
    EXPECT_FALSE(source_->IsFinished(capture_));
    Connect(capture_);
    Pass(300);
    tap_.WriteStopped(capture_, TapStopReason::kCommand);
    Pass(600);
    sink_.StoreAll();
    Pass(600);
    EXPECT_TRUE(source_->IsFinished(capture_));
  }
};

// The agent is killed when the store holds any number of its chunks; the next one must end up with
// every event and every loss once.
TEST_F(TapSourceRestartTest, StoresEverythingOnceOverARestartOfTheAgent) {
  for (size_t stored = 0; stored < 12; ++stored) {
    SCOPED_TRACE(stored);
    FakeTap tap;
    tap.Seal(F_SEAL_SHRINK | F_SEAL_GROW);
    sink_.entries.clear();
    MakeSource();
    source_->ApplyOrder(SourceOrder::Start(capture_, {}, {}));
    const auto deliver = [&](const CaptureId& running) {
      UniqueFd agent_end = tap.Connect(running);
      const int fd = agent_end.get();
      source_->AddConnection(std::move(agent_end));
      runner_.FireWatch(fd);
      runner_.RunUntilIdle();
    };
    deliver(CaptureId());
    tap.WriteStarted(capture_);
    std::vector<std::string> expected;
    for (uint64_t document = 0; document < 6; ++document) {
      const auto core = static_cast<uint32_t>(document % 2);
      const uint64_t first = document / 2 * 12 + 3;  // ten events, then a hole of two
      tap.WriteDocument(Document(core, first, 10), capture_, core);
      for (uint64_t i = first; i < first + 10; ++i) expected.push_back(Event(core, i));
      Pass(600);
      if (document == 3) {
        for (size_t i = 0; i < std::min(stored, sink_.entries.size()); ++i) sink_.Answer(i, true);
        Pass(300);
      }
    }
    // Killed: what was on its way is gone.
    std::erase_if(sink_.entries, [](const auto& entry) { return !entry.stored; });
    MakeSource();
    deliver(capture_);
    source_->ApplyOrder(SourceOrder::Start(capture_, {}, sink_.Cursors()));
    Pass(300);
    source_->Stop(capture_, Source::kStopNow);
    tap.WriteStopped(capture_, TapStopReason::kCommand);
    Pass(600);
    sink_.StoreAll();
    Pass(600);
    EXPECT_TRUE(source_->IsFinished(capture_));
    EXPECT_EQ(tap.read_pos(), tap.write_pos());
    std::vector<std::string> events = sink_.Events();
    std::sort(events.begin(), events.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(events, expected);
    EXPECT_EQ(LostEvents(LossPlace::kRuntimeRing), 2u * (2 + 2 + 2));
  }
}

// The records that showed where a core's numbers stood have long gone from the ring.
TEST_F(TapSourceRestartTest, CountsTheHoleBeforeAQuietCoresNextDocument) {
  Connect();
  StartAndRecord();
  tap_.WriteDocument(Document(0, 1, 5), capture_, 0);
  Pass(2'000);
  sink_.StoreAll();
  tap_.WriteLoss(
      {.refused_documents = 1, .refused_events = 4, .first_realtime_ns = 1, .refused_ids_end = 12},
      capture_, 0);  // 6 and 7 were overwritten
  Pass(2'000);
  sink_.StoreAll();
  Pass(300);
  ASSERT_EQ(tap_.read_pos(), tap_.write_pos()) << "all is durable, and nothing is kept";
  MakeSource();
  Connect(capture_);
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, sink_.Cursors()));
  tap_.WriteDocument(Document(0, 21, 1), capture_, 0);  // 12 to 20 were
  tap_.WriteDocument(Document(1, 8, 1), capture_, 1);   // 1 to 7 were, of a core not seen before
  Pass(2'000);
  source_->Stop(capture_, Source::kStopNow);
  tap_.WriteStopped(capture_, TapStopReason::kCommand);
  Pass(600);
  EXPECT_THAT(sink_.Events(), SizeIs(7));
  EXPECT_EQ(LostEvents(LossPlace::kTapBuffer), 4u);
  EXPECT_EQ(LostEvents(LossPlace::kRuntimeRing), 2u + 9 + 7);
}

TEST_F(TapSourceRestartTest, TraceRestartedBeforeAgentRestartResetsNumbers) {
  Connect();
  StartAndRecord();
  tap_.WriteDocument(Document(0, 1, 50), capture_, 0);
  tap_.WriteStopped(capture_, TapStopReason::kRuntimeClosed);
  tap_.WriteStarted(capture_);
  Pass(2'000);
  sink_.StoreAll();
  Pass(300);
  ASSERT_EQ(tap_.read_pos(), tap_.write_pos());
  MakeSource();
  Connect(capture_);
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, sink_.Cursors()));
  tap_.WriteDocument(Document(0, 61, 1), capture_, 0);  // 1 to 60 of the second trace were lost
  Pass(2'000);
  EXPECT_EQ(LostEvents(LossPlace::kRuntimeRing), 60u);
}

TEST_F(TapSourceRestartTest, WaitsForTheCursorsBeforeItReads) {
  tap_.WriteStarted(capture_);
  tap_.WriteDocument(Document(0, 0, 3), capture_);
  Connect(capture_);
  Pass(5'000);
  EXPECT_EQ(metrics_.documents.load(), 0u);
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, {}));
  Pass(300);
  EXPECT_EQ(metrics_.documents.load(), 1u);
}

TEST_F(TapSourceRestartTest, ResumesOfflineWithoutContactingTap) {
  tap_.WriteStarted(capture_);
  tap_.WriteDocument(Document(0, 0, 3), capture_);
  tap_.SetState(TapState::kStreaming);
  source_->ApplyOrder(SourceOrder::Continue(capture_, {}, {}));
  Connect(capture_);
  Pass(5'000);
  EXPECT_EQ(metrics_.documents.load(), 1u);
  EXPECT_EQ(status().state, CaptureWorkerState::kRecording);
  EXPECT_FALSE(tap_.ReadCommand());
  sink_.StoreAll();
  Pass(600);
  EXPECT_EQ(tap_.read_pos(), tap_.write_pos()) << "released";
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, {}));
  Pass(300);
  const auto start = tap_.ReadCommand();
  ASSERT_TRUE(start);
  EXPECT_EQ(start->type, TapMessageType::kStart);
}

TEST_F(TapSourceRestartTest, StartsNothingOffline) {
  source_->ApplyOrder(SourceOrder::Continue(capture_, {}, {}));
  Connect();
  Pass(5'000);
  EXPECT_FALSE(tap_.ReadCommand());
  EXPECT_TRUE(listener_.statuses.empty());
  source_->Stop(capture_, Source::kStopNow);
  Pass(300);
  EXPECT_FALSE(tap_.ReadCommand());
}

TEST_F(TapSourceRestartTest, RecordsOfOtherCapturesWaitDuringOfflineResume) {
  tap_.WriteStarted(capture_);
  tap_.WriteDocument(Document(0, 0, 3), capture_);
  tap_.WriteStopped(capture_, TapStopReason::kCommand);
  tap_.WriteStarted(other_);
  tap_.WriteDocument(Document(0, 0, 2), other_);
  tap_.SetState(TapState::kStreaming);
  StreamCursor cursor;  // of the first there is something, so that the worker takes part in it
  cursor.stream.agent_id = "agent";
  cursor.stream.kind = StreamKind::kNeuronCore;
  Connect(other_);
  cursor.stream.worker = listener_.workers.begin()->first;
  cursor.next_sequence = 1;
  source_->ApplyOrder(SourceOrder::Continue(capture_, {}, {&cursor, 1}));
  Pass(10'000);
  EXPECT_EQ(metrics_.documents.load(), 1u);
  EXPECT_EQ(metrics_.records_unknown.load(), 0u);
  EXPECT_FALSE(tap_.ReadCommand()) << "nobody said that the other is over";
  source_->ApplyOrder(SourceOrder::Start(other_, {}, {}));
  Pass(300);
  EXPECT_EQ(metrics_.documents.load(), 2u);
}

TEST_F(TapSourceRestartTest, StopsEndedCaptureResumedOffline) {
  tap_.WriteStarted(capture_);
  tap_.SetState(TapState::kStreaming);
  source_->ApplyOrder(SourceOrder::Continue(capture_, {}, {}));
  Connect(capture_);
  Pass(300);
  source_->Forget(capture_);
  const auto stop = tap_.ReadCommand();
  ASSERT_TRUE(stop);
  EXPECT_EQ(stop->type, TapMessageType::kStop);
}

TEST_F(TapSourceRestartTest, ClearsAwayACaptureThatIsOver) {
  tap_.WriteStarted(other_);
  tap_.WriteDocument(Document(0, 0, 3), other_);
  tap_.SetState(TapState::kStreaming);
  Connect(other_);
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, {}));
  ASSERT_TRUE(tap_.ReadCommand());
  tap_.Answer(TapMessageType::kStart, TapResult::kAnotherCapture, other_);
  Deliver();
  EXPECT_EQ(status().state, CaptureWorkerState::kRefused);
  Pass(1'500);
  const auto stop = tap_.ReadCommand();
  ASSERT_TRUE(stop);
  EXPECT_EQ(stop->type, TapMessageType::kStop);
  EXPECT_EQ(stop->capture_id, other_);
  tap_.Answer(TapMessageType::kStop, TapResult::kOk, other_);
  Deliver();
  Pass(1'500);
  const auto start = tap_.ReadCommand();
  ASSERT_TRUE(start);
  EXPECT_EQ(start->type, TapMessageType::kStart);
  EXPECT_EQ(start->capture_id, capture_);
  EXPECT_EQ(tap_.read_pos(), tap_.write_pos());
}

// Its agent died, it is over, and the next agent heard so before or after the tap had found it.
TEST_F(TapSourceRestartTest, ATapThatRecordsACaptureThatIsOverIsStoppedWithoutAnother) {
  for (const bool reported_first : {true, false}) {
    SCOPED_TRACE(reported_first);
    MakeSource();
    tap_.HangUp();
    tap_.SetState(TapState::kStreaming);
    tap_.WriteStarted(other_);
    tap_.WriteDocument(Document(0, 0, 3), other_);
    if (reported_first) source_->OnCaptureListComplete();
    Connect(other_);
    if (!reported_first) {
      Pass(1'500);
      EXPECT_FALSE(tap_.ReadCommand()) << "it may still be reported";
      EXPECT_LT(tap_.read_pos(), tap_.write_pos());
      source_->OnCaptureListComplete();
    }
    Pass(1'500);
    const auto stop = tap_.ReadCommand();
    ASSERT_TRUE(stop);
    EXPECT_EQ(stop->type, TapMessageType::kStop);
    EXPECT_EQ(stop->capture_id, other_);
    tap_.WriteStopped(other_, TapStopReason::kCommand);
    tap_.Answer(TapMessageType::kStop, TapResult::kOk, other_);
    Deliver();
    Pass(1'500);
    EXPECT_FALSE(tap_.ReadCommand());
    EXPECT_EQ(tap_.read_pos(), tap_.write_pos());
  }
}

TEST_F(TapSourceRestartTest, ContinuesAcrossReconnectOfTap) {
  Connect();
  StartAndRecord();
  tap_.WriteDocument(Document(0, 0, 2), capture_);
  tap_.HangUp();
  Deliver();
  Pass(1'000);
  EXPECT_EQ(status().state, CaptureWorkerState::kRecording);
  tap_.WriteDocument(Document(0, 2, 2), capture_);
  Connect(capture_);
  const auto again = tap_.ReadCommand();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->type, TapMessageType::kStart);
  Pass(1'000);
  EXPECT_THAT(sink_.Events(), SizeIs(4));
  EXPECT_TRUE(sink_.Losses().empty());
  EXPECT_THAT(listener_.workers, SizeIs(1));
}

TEST_F(TapSourceRestartTest, EndsTheStreamsOfWorkersThatDidNotOutliveTheAgent) {
  StreamCursor cursor;
  cursor.stream.agent_id = "agent";
  cursor.stream.worker.pid = 4711;
  cursor.stream.kind = StreamKind::kNeuronCore;
  cursor.next_sequence = 7;
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, {&cursor, 1}));
  source_->Stop(capture_, Source::kStopNow);
  ASSERT_EQ(sink_.entries.size(), 1u);
  const ChunkHeader& header = sink_.entries[0].chunk.header;
  EXPECT_EQ(header.stream, cursor.stream);
  EXPECT_EQ(header.sequence, 7u);
  EXPECT_TRUE(header.end_of_stream);
  ASSERT_EQ(header.losses.size(), 1u);
  EXPECT_TRUE(header.losses[0].events_unknown);
  EXPECT_EQ(status().state, CaptureWorkerState::kLost);
  EXPECT_EQ(status().worker.pid, 4711u);
  EXPECT_EQ(status().streams, 1u);
  EXPECT_FALSE(source_->IsFinished(capture_));
  sink_.StoreAll();
  EXPECT_TRUE(source_->IsFinished(capture_));
}

TEST_F(TapSourceRestartTest, ReportsUnknownForWorkerDeadBeforeCaptureArrived) {
  Connect();
  StartAndRecord();
  tap_.WriteDocument(Document(0, 0, 2), capture_);
  Pass(600);
  sink_.StoreAll();
  Pass(300);  // all that there was is durable, and given back to the tap
  MakeSource();
  Connect(capture_);
  tap_.HangUp();
  SetProcessAlive(false);
  Deliver();
  Pass(600);
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, sink_.Cursors()));
  Pass(600);
  source_->Stop(capture_, Source::kStopNow);
  sink_.StoreAll();
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(status().state, CaptureWorkerState::kLost);
  EXPECT_EQ(status().events_stored, 2u);
  ASSERT_THAT(sink_.Losses(), SizeIs(1));
  EXPECT_TRUE(sink_.Losses().front().events_unknown);
}

TEST_F(TapSourceRestartTest, WaitsForAWorkerThatLivesToFindTheNewAgent) {
  Connect();
  StartAndRecord();
  tap_.WriteDocument(Document(0, 0, 2), capture_);
  Pass(600);
  sink_.StoreAll();
  tap_.WriteDocument(Document(0, 2, 2), capture_);
  // Killed; the capture is stopped before the tap has found the next agent.
  MakeSource();
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, sink_.Cursors()));
  StopBeforeTheTapReturns();
  EXPECT_THAT(sink_.Events(), SizeIs(4));
  EXPECT_TRUE(sink_.Losses().empty());
}

TEST_F(TapSourceRestartTest, WaitsForWorkerWithoutStoredData) {
  Connect();
  StartAndRecord();
  tap_.WriteDocument(Document(0, 0, 2), capture_);
  // Killed with the first chunk; the aggregator knows that the worker takes part, and no more.
  StreamCursor worker;
  worker.stream.worker = listener_.workers.begin()->first;
  worker.stream.kind = StreamKind::kNeuronCore;
  worker.stream.nc_idx = limits::kNoNcIdx;
  MakeSource();
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, {&worker, 1}));
  StopBeforeTheTapReturns();
  EXPECT_THAT(sink_.Events(), SizeIs(2));
  EXPECT_EQ(status().streams, 1u);
}

TEST_F(TapSourceRestartTest, ReportsWorkerWithoutStoredDataAsLost) {
  StreamCursor worker;
  worker.stream.worker.pid = 4711;
  worker.stream.kind = StreamKind::kNeuronCore;
  worker.stream.nc_idx = limits::kNoNcIdx;
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, {&worker, 1}));
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(status().state, CaptureWorkerState::kLost);
  EXPECT_EQ(status().worker.pid, 4711u);
  EXPECT_TRUE(sink_.entries.empty());
}

// The ring is full of what nobody has read when the agent comes back after the stop: all of the
// executions asked for reach the store, of cores with stored events and of cores without, and no
// others.
TEST_F(TapSourceRestartTest, ReadsUnreadExecutionsAfterStop) {
  const auto executions = [](uint32_t core, uint64_t first, uint64_t last) {
    std::string json = R"({"events":[)";
    for (uint64_t number = first; number <= last; ++number) {
      json += number > first ? "," : "";
      json += R"({"event_type":"kbl_exec_pre","phase":"instant","nc_idx":)" + std::to_string(core) +
              R"(,"nc_local_id":)" + std::to_string(number) + R"(,"data":{"exec_id":)" +
              std::to_string(number) + R"(},"timestamp_ns":)" + std::to_string(number) + "}";
    }
    return json + "]}";
  };
  CaptureSpec spec;
  spec.conditions.at_execution = 40;
  spec.conditions.executions = 10;
  CaptureBegin begin = In(0);
  begin.first_execution = 40;
  begin.last_execution = 49;
  Connect();
  source_->ApplyOrder(SourceOrder::Arm(capture_, spec, {}));
  source_->ApplyOrder(SourceOrder::Begin(capture_, begin));
  ASSERT_TRUE(tap_.ReadCommand());
  tap_.WriteStarted(capture_);
  tap_.Answer(TapMessageType::kStart, TapResult::kOk, capture_);
  Deliver();
  tap_.WriteDocument(executions(0, 38, 42), capture_, 0);
  Pass(600);
  sink_.StoreAll();
  ASSERT_THAT(sink_.Events(), SizeIs(3));
  MakeSource();
  tap_.WriteDocument(executions(0, 43, 55), capture_, 0);
  tap_.WriteDocument(executions(1, 38, 55), capture_, 1);
  Connect(capture_);
  source_->ApplyOrder(SourceOrder::Finish(capture_, spec, sink_.Cursors(), begin));
  source_->Stop(capture_, Source::kStopNow);
  AnswerStop();
  Pass(600);
  sink_.StoreAll();
  Pass(600);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_THAT(sink_.Events(true), SizeIs(20));
  EXPECT_TRUE(sink_.Losses().empty());
}

// The place of a worker among those of its node lives with the worker, not with the agent.
TEST_F(TapSourceRestartTest, AWorkerKeepsItsPlaceOverARestartOfTheAgent) {
  constexpr auto kPatienceMs = TapSource::kPlacePatienceNs / 1'000'000;
  next_place_ = 12;
  Connect();
  Pass(kPatienceMs - 1'000);
  ASSERT_THAT(rank_facts_, SizeIs(1));
  EXPECT_FALSE(rank_facts_[0].may_be_placed) << "others may not have come back yet";
  EXPECT_EQ(rank_facts_[0].first_node_core, std::nullopt);
  Pass(1'300);
  EXPECT_TRUE(rank_facts_[0].may_be_placed);

  next_place_ = 0;
  MakeSource();
  Connect();
  EXPECT_EQ(rank_facts_.at(0).first_node_core, 12u);

  tap_.header().agent_note = 0xffff;  // of another job, by the worker itself
  MakeSource();
  Connect();
  EXPECT_EQ(rank_facts_.at(0).first_node_core, std::nullopt);
}

TEST_F(TapSourceRestartTest, AnEndedWorkerStillContradictsThoseItRanBeside) {
  Connect();
  FakeTap second;
  second.Seal(F_SEAL_SHRINK | F_SEAL_GROW);
  SetProcessAlive(true, 98'766);  // both taps are of this test's process
  UniqueFd agent_end = second.Connect();
  const int second_fd = agent_end.get();
  source_->AddConnection(std::move(agent_end));
  runner_.FireWatch(second_fd);
  runner_.RunUntilIdle();
  Pass(3'000);
  SetProcessAlive(false);
  tap_.HangUp();
  Deliver();
  Pass(1'000);
  second.SetFacts({{"runtime.visible_cores", "1"}});
  Pass(1'000);
  EXPECT_EQ(listener_.gone, 1);
  ASSERT_THAT(rank_facts_, SizeIs(2));
  EXPECT_TRUE(RanTogether(rank_facts_[0], rank_facts_[1]));
  EXPECT_NE(rank_facts_[0].ended_ns.has_value(), rank_facts_[1].ended_ns.has_value());
}

TEST_F(TapSourceRestartTest, GivesUpOnAWorkerThatLivesAndDoesNotReturn) {
  Connect();
  StartAndRecord();
  tap_.WriteDocument(Document(0, 0, 2), capture_);
  Pass(600);
  sink_.StoreAll();
  MakeSource();
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, sink_.Cursors()));
  source_->Stop(capture_, Source::kStopNow);
  Pass(TapSource::kReturnPatienceNs / 1'000'000 + 300);
  sink_.StoreAll();
  EXPECT_TRUE(source_->IsFinished(capture_));
  ASSERT_THAT(sink_.Losses(), SizeIs(1));
  EXPECT_TRUE(sink_.Losses()[0].events_unknown);
}

}  // namespace
}  // namespace neurontrace
