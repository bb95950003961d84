// SPDX-License-Identifier: Apache-2.0
// One worker with a fake tap whose cost the test decides, in a capture with a budget.
#include <cstring>

#include "agent/source/neuron/tap_source_fixture.h"
#include "lib/trace/fidelity.h"

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class TapSourceFidelityTest : public TapSourceTest {
 protected:
  TapSourceFidelityTest() { spec_.budget.core_ppm = 20'000; }

  void Begin() {
    Connect();
    source_->ApplyOrder(SourceOrder::Start(capture_, spec_, {}));
    const auto command = tap_.ReadCommand();
    ASSERT_TRUE(command);
    tap_.SetState(TapState::kStreaming);
    WriteStarted(*command);
    tap_.Answer(TapMessageType::kStart, TapResult::kOk, capture_);
    Deliver();
  }
  // The record that a tap writes when it carries out the command.
  void WriteStarted(const FakeTap::Command& command) {
    TapTraceStarted started = {};
    started.event_rule = command.start.event_rule;
    started.name_count = static_cast<uint32_t>(command.names.size());
    std::string payload(reinterpret_cast<const char*>(&started), sizeof started);
    for (const std::string& name : command.names) payload += name + '\0';
    tap_.Write(TapRecordType::kTraceStarted, payload, capture_);
  }
  // Carries out the tap's orders: STOP, then START.
  void AnswerRestart() {
    const auto stop = tap_.ReadCommand();
    ASSERT_TRUE(stop);
    ASSERT_EQ(stop->type, TapMessageType::kStop);
    const auto start = tap_.ReadCommand();
    ASSERT_TRUE(start);
    ASSERT_EQ(start->type, TapMessageType::kStart);
    left_out_ = start->names;
    rule_ = static_cast<TapEventRule>(start->start.event_rule);
    tap_.WriteStopped(capture_, TapStopReason::kCommand);
    tap_.Answer(TapMessageType::kStop, TapResult::kOk, capture_);
    tap_.realtime_ns += 3'000;
    WriteStarted(*start);
    tap_.Answer(TapMessageType::kStart, TapResult::kOk, capture_);
    Deliver();
  }
  // So long at such a cost of the tap.
  void Spend(uint64_t ms, uint64_t tap_ppm) {
    for (uint64_t i = 0; i < ms / 100; ++i) {
      tap_.header().counters.drain_ns += tap_ppm * 100;
      tap_.realtime_ns += 100'000'000;
      Pass(100);
    }
  }
  void StoreAll() {
    source_->Flush();
    sink_.StoreAll();
  }
  std::vector<std::string> Notes() {
    StoreAll();
    std::vector<std::string> notes;
    for (const std::string& event : sink_.Events()) {
      if (event.find(kFidelityEventType) != std::string::npos) notes.push_back(event);
    }
    return notes;
  }
  static std::string Typed(const std::string& type, uint64_t number) {
    return R"({"event_type":")" + type + R"(","phase":"start","nc_idx":0,"nc_local_id":)" +
           std::to_string(number) + R"(,"data":{},"timestamp_ns":)" +
           std::to_string(1'000'000 + number) + "}";
  }
  void WriteTyped(const std::vector<std::string>& types, uint64_t first = 0) {
    std::string json = R"({"events":[)";
    for (size_t i = 0; i < types.size(); ++i)
      json += (i > 0 ? "," : "") + Typed(types[i], first + i);
    tap_.WriteDocument(json + "]}", capture_);
    runner_.RunUntilIdle();
    Pass(20);
  }

  CaptureSpec spec_;
  std::vector<std::string> left_out_;
  TapEventRule rule_ = TapEventRule::kAll;
};

TEST_F(TapSourceFidelityTest, WithinTheBudgetNothingIsLeftOut) {
  Begin();
  WriteTyped({"nrt_execute", "nrt_tensor_free"});
  Spend(30'000, 19'000);
  EXPECT_FALSE(tap_.ReadCommand());
  EXPECT_THAT(Notes(), IsEmpty());
  ASSERT_EQ(source_->loads().size(), 1u);
  EXPECT_NEAR(source_->loads().begin()->second.cost->core_ppm, 19'000, 200);
  EXPECT_EQ(source_->loads().begin()->second.fidelity, 0u);
}

TEST_F(TapSourceFidelityTest, RestartsTraceWithoutAllocations) {
  Begin();
  WriteTyped({"nrt_execute", "nrt_tensor_free"});
  Spend(1'400, 50'000);
  AnswerRestart();
  EXPECT_EQ(rule_, TapEventRule::kAllButThese);
  EXPECT_THAT(left_out_, ElementsAre("nrt_tensor_free"));
  EXPECT_EQ(status().state, CaptureWorkerState::kRecording);
  WriteTyped({"nrt_execute"});
  const std::vector<std::string> notes = Notes();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], AllOf(HasSubstr(R"("phase":"instant","nc_idx":0)"),
                              HasSubstr(R"("level":1)"), HasSubstr(R"("reason":"core_budget")"),
                              HasSubstr(R"("leaves_out":"allocation events")"),
                              HasSubstr(R"("core_ppm":50)"), HasSubstr(R"("unrecorded_ns":3000)")));
  EXPECT_EQ(metrics_.fidelity_changes, 1u);
  EXPECT_EQ(source_->loads().begin()->second.fidelity, 1u);
  // Between the events before and behind it.
  const std::vector<std::string> events = sink_.Events();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[2], notes[0]);
  EXPECT_EQ(status().events_lost, 0u);
}

TEST_F(TapSourceFidelityTest, OtherTypesOfTheSameNumberHaveOtherLevels) {
  Begin();
  Pass(400);
  tap_.SetFacts(
      {{"runtime.visible_cores", "4"},
       {"runtime.event_types", "nrt_execute,nc_exec_running,cc_running,nrt_tensor_read"}});
  WriteTyped({"nrt_execute"});
  Spend(1'600, 50'000);
  AnswerRestart();
  EXPECT_EQ(rule_, TapEventRule::kAllButThese);
  EXPECT_THAT(left_out_, ElementsAre("nrt_tensor_read"));
}

// A worker that stays over its budget: down to the last level, and no further.
TEST_F(TapSourceFidelityTest, LowersFidelityToRequiredEvents) {
  Begin();
  WriteTyped({"nrt_execute"});
  Spend(1'400, 500'000);
  AnswerRestart();
  Spend(1'400, 500'000);
  AnswerRestart();
  EXPECT_EQ(rule_, TapEventRule::kAllButThese);
  EXPECT_THAT(left_out_, ElementsAre("nrt_execute", "nrt_tensor_free"));
  Spend(30'000, 500'000);
  EXPECT_FALSE(tap_.ReadCommand());
  EXPECT_EQ(Notes().size(), 2u);
  EXPECT_EQ(source_->loads().begin()->second.fidelity, 5u);
}

TEST_F(TapSourceFidelityTest, ComesBackWhenThereIsRoom) {
  Begin();
  WriteTyped({"nrt_execute"});
  Spend(1'400, 50'000);
  AnswerRestart();
  Spend(2'000, 15'000);
  Spend(10'000, 2'000);
  AnswerRestart();
  EXPECT_EQ(rule_, TapEventRule::kAll);
  const std::vector<std::string> notes = Notes();
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_THAT(notes[1], AllOf(HasSubstr(R"("level":0)"), HasSubstr(R"("reason":"room")"),
                              HasSubstr(R"("leaves_out":"")")));
  // The stretch in between, reported without a loss.
  std::vector<Loss> told;
  for (const Loss& loss : sink_.Losses()) {
    if (IsLeftOut(loss)) told.push_back(loss);
  }
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back().detail,
            "without allocation events because the budget of 2 % of a processor is used up");
  EXPECT_GT(told.back().last_timestamp_ns, told.front().first_timestamp_ns);
  EXPECT_EQ(status().events_lost, 0u);
}

// The agent's own time counts too, and where the runtime cannot filter, the agent omits what it
// reads: rows can be told apart when they are read again.
TEST_F(TapSourceFidelityTest, AgentFiltersWhatRuntimeCannotFilter) {
  tap_.SetFacts({{"runtime.visible_cores", "4"}});
  spec_.budget.core_ppm = 0;
  spec_.budget.bytes_per_second = 10;
  Begin();
  for (uint64_t i = 0; i < 30; ++i) {
    WriteTyped({"nrt_execute", "nrt_tensor_free"}, 2 * i);
    Spend(100, 0);
  }
  EXPECT_FALSE(tap_.ReadCommand());
  const std::vector<std::string> notes = Notes();
  ASSERT_FALSE(notes.empty());
  EXPECT_THAT(notes[0], AllOf(HasSubstr(R"("level":1)"), HasSubstr(R"("reason":"bytes_budget")")));
  EXPECT_GT(metrics_.events_left_out, 10u);
  const uint64_t kept = sink_.Events().size() - notes.size();
  EXPECT_EQ(kept + metrics_.events_left_out, 60u);
  EXPECT_EQ(status().events_lost, 0u);
}

// More often than the runtime's trace may restart.
TEST_F(TapSourceFidelityTest, TheAgentsTimeCounts) {
  turn_cpu_ns_ = 6'000'000;  // of each look at the clock: a few percent
  Begin();
  Spend(1'600, 0);
  AnswerRestart();
  EXPECT_THAT(left_out_, ElementsAre("nrt_tensor_free"));
}

TEST_F(TapSourceFidelityTest, RestartedAgentReadsSameRows) {
  Begin();
  WriteTyped({"nrt_execute", "nrt_tensor_free"});
  Spend(1'400, 50'000);
  AnswerRestart();
  WriteTyped({"nrt_execute"}, 0);
  source_->Flush();
  sink_.StoreAll();
  WriteTyped({"nrt_execute"}, 1);
  // Killed before that is stored.
  tap_.HangUp();
  const std::vector<StreamCursor> cursors = sink_.Cursors();
  MakeSource();
  Connect(capture_);
  source_->ApplyOrder(SourceOrder::Start(capture_, spec_, cursors));
  ASSERT_TRUE(tap_.ReadCommand());
  tap_.Answer(TapMessageType::kStart, TapResult::kOk, capture_);
  Deliver();
  Pass(300);
  StoreAll();
  std::vector<std::string> runtimes;
  for (const std::string& event : sink_.Events(true)) {
    if (event.find(kFidelityEventType) == std::string::npos) runtimes.push_back(event);
  }
  EXPECT_EQ(runtimes,
            (std::vector<std::string>{Typed("nrt_execute", 0), Typed("nrt_tensor_free", 1),
                                      Typed("nrt_execute", 0), Typed("nrt_execute", 1)}));
  EXPECT_EQ(LostEvents(LossPlace::kRuntimeRing), 0u);
}

// Nobody knows what a trace leaves out that another agent began: it is restarted, once.
TEST_F(TapSourceFidelityTest, TakenOverTraceRestarts) {
  tap_.SetState(TapState::kStreaming);
  Connect(capture_);
  source_->ApplyOrder(SourceOrder::Start(capture_, spec_, {}));
  ASSERT_TRUE(tap_.ReadCommand());
  tap_.Answer(TapMessageType::kStart, TapResult::kOk, capture_);
  Deliver();
  WriteTyped({"nrt_execute"});
  Spend(3'000, 100);
  AnswerRestart();
  EXPECT_EQ(rule_, TapEventRule::kAll);
  EXPECT_THAT(Notes(), ElementsAre(AllOf(HasSubstr(R"("level":0)"), HasSubstr("taken_over"))));
  EXPECT_EQ(status().begun_realtime_ns, 0u) << "that was before this agent's time";
  Spend(30'000, 100);
  EXPECT_FALSE(tap_.ReadCommand());
}

// The capture is stopped while its trace is ordered to restart: the answer to the STOP of the
// restart is not its end.
TEST_F(TapSourceFidelityTest, AStopInTheMiddleOfARestartLosesNothing) {
  Begin();
  WriteTyped({"nrt_execute"});
  Spend(1'400, 50'000);
  source_->Stop(capture_, Source::kStopNow);
  AnswerRestart();
  WriteTyped({"nrt_execute"});
  AnswerStop();
  Pass(300);
  sink_.StoreAll();
  Pass(300);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
  EXPECT_EQ(status().events_lost, 0u);
  EXPECT_EQ(metrics_.events_after_end, 0u);
  EXPECT_THAT(sink_.Events(), Contains(Typed("nrt_execute", 0)).Times(2));
}

TEST_F(TapSourceFidelityTest, ResendsOrderToTapLostDuringRestart) {
  Begin();
  WriteTyped({"nrt_execute"});
  Spend(1'400, 50'000);
  tap_.HangUp();
  Deliver();
  Connect();
  std::optional<FakeTap::Command> last;
  while (auto command = tap_.ReadCommand()) last = command;
  ASSERT_TRUE(last);
  ASSERT_EQ(last->type, TapMessageType::kStart);
  EXPECT_THAT(last->names, ElementsAre("nrt_tensor_free"));
  WriteStarted(*last);
  tap_.Answer(TapMessageType::kStart, TapResult::kOk, capture_);
  Deliver();
  EXPECT_EQ(source_->loads().begin()->second.fidelity, 1u);
}

// The trace restarts five times in a row and then every five seconds; meanwhile the agent leaves
// out what it reads.
TEST_F(TapSourceFidelityTest, RestartsAreFewAndTheAgentHelpsOut) {
  Begin();
  WriteTyped({"nrt_execute"});
  uint64_t restarts = 0;
  for (int i = 0; i < 600; ++i) {
    // A load that comes and goes.
    Spend(100, i / 100 % 2 == 0 ? 100'000 : 100);
    if (const auto stop = tap_.ReadCommand()) {
      const auto start = tap_.ReadCommand();
      ASSERT_TRUE(start);
      ++restarts;
      tap_.WriteStopped(capture_, TapStopReason::kCommand);
      tap_.Answer(TapMessageType::kStop, TapResult::kOk, capture_);
      WriteStarted(*start);
      tap_.Answer(TapMessageType::kStart, TapResult::kOk, capture_);
      Deliver();
    }
  }
  EXPECT_GE(restarts, 3u);
  EXPECT_LE(restarts, WorkerFidelity::kRestartBurst + 12u);
}

TEST_F(TapSourceFidelityTest, PreviewsAndFlightRecordersHaveNone) {
  spec_.mode = CaptureMode::kPreview;
  Begin();
  Spend(5'000, 500'000);
  EXPECT_FALSE(tap_.ReadCommand());
  EXPECT_FALSE(source_->loads().begin()->second.fidelity);
  EXPECT_NEAR(source_->loads().begin()->second.cost->core_ppm, 500'000, 5'000);
}

}  // namespace
}  // namespace neurontrace
