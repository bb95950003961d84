// SPDX-License-Identifier: Apache-2.0
// Goal: what the tap does with commands, with the life of the runtime and of other profilers, and
// with time. Method: the tap is stepped by hand over a runtime, an agent and a clock of the test's
// own.
#include "tap/tap.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tap/tap_test_support.h"

namespace neurontrace::tap {
namespace {

using ::testing::HasSubstr;

TapResult ResultOf(const TapStatus& status) { return static_cast<TapResult>(status.result); }

TEST_F(TapTest, SendsHelloWithBuffer) {
  InitAndConnect();
  EXPECT_EQ(agent_.hello().header.magic, kTapMessageMagic);
  EXPECT_EQ(agent_.hello().claimed_pid, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(agent_.hello().process_start_ticks, ProcessStartTicks());
  EXPECT_GT(ProcessStartTicks(), 0u);
  EXPECT_EQ(agent_.header()->magic, kTapBufferMagic);
  EXPECT_EQ(agent_.header()->ring_bytes, kTapRingBytesMin);
  EXPECT_STREQ(agent_.hello().tap_version, NEURONTRACE_VERSION);
  EXPECT_EQ(ReadOfType(TapRecordType::kLifecycle).size(), 1u);
}

TEST_F(TapTest, StreamsFromStartToStop) {
  InitAndConnect();
  StartCapture();
  EXPECT_EQ(runtime_.max_events_per_nc, 65536u);
  const std::vector<TapStatus> statuses = agent_.ReadStatuses();
  ASSERT_EQ(statuses.size(), 2u);  // the change of state, then the answer
  EXPECT_EQ(ResultOf(statuses[0]), TapResult::kNone);
  EXPECT_EQ(ResultOf(statuses[1]), TapResult::kOk);
  EXPECT_EQ(statuses[1].command, static_cast<uint32_t>(TapMessageType::kStart));

  runtime_.Emit(0, 10);
  runtime_.Emit(1, 20);
  Advance(200 * kNsPerMs);
  Step();
  const std::vector<TapTestRecord> documents = ReadOfType(TapRecordType::kFetchDocument);
  ASSERT_EQ(documents.size(), 2u);
  EXPECT_EQ(documents[0].header.nc_idx + documents[1].header.nc_idx, 1u);
  EXPECT_EQ(documents[0].header.capture_id[0], 1);

  runtime_.Emit(1, 5);
  agent_.Send(TapTestStopPacket(1));
  Step();
  EXPECT_EQ(State(), TapState::kIdle);
  EXPECT_EQ(runtime_.stops, 1);
  const std::vector<TapTestRecord> rest = agent_.Read();
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_EQ(rest[0].header.flags, kTapRecordFlagFinalDrain);
  TapTraceStopped stopped;
  memcpy(&stopped, rest[1].payload.data(), sizeof stopped);
  EXPECT_EQ(stopped.reason, static_cast<uint32_t>(TapStopReason::kCommand));
  EXPECT_EQ(stopped.documents, 3u);
  EXPECT_EQ(stopped.final_drain_complete, 1u);
  EXPECT_EQ(runtime_.live_buffers, 0);
  EXPECT_EQ(runtime_.misuses, 0);
}

TEST_F(TapTest, StartIsIdempotentAndOneCaptureRunsAtATime) {
  InitAndConnect();
  StartCapture(1);
  agent_.ReadStatuses();
  agent_.Send(TapTestStart(1).Packet());
  agent_.Send(TapTestStart(2).Packet());
  agent_.Send(TapTestStopPacket(2));
  agent_.Send(TapTestStopPacket(1));
  agent_.Send(TapTestStopPacket(1));
  Step();
  std::vector<TapResult> answers;
  for (const TapStatus& status : agent_.ReadStatuses()) {
    if (status.command != 0) answers.push_back(ResultOf(status));
  }
  EXPECT_THAT(answers, ::testing::ElementsAre(TapResult::kOk, TapResult::kAnotherCapture,
                                              TapResult::kAnotherCapture, TapResult::kOk,
                                              TapResult::kNotRunning));
  EXPECT_EQ(runtime_.starts, 1);
  EXPECT_EQ(runtime_.stops, 1);
}

TEST_F(TapTest, ConfiguresCoresAndEventTypes) {
  InitAndConnect();
  TapTestStart start;
  start.start.nc_bitmap[0] = 0b10;
  start.start.event_rule = static_cast<uint32_t>(TapEventRule::kOnlyThese);
  start.names = {"cc_running", "unheard_of"};
  agent_.Send(start.Packet());
  Step();
  EXPECT_EQ(runtime_.disabled_cores.count(0), 1u);
  EXPECT_EQ(runtime_.disabled_cores.count(1), 0u);
  EXPECT_THAT(runtime_.disabled_types, ::testing::ElementsAre("nc_exec_running", "nrt_execute"));
  std::vector<std::string> details;
  agent_.ReadStatuses(&details);
  EXPECT_THAT(details.back(), HasSubstr("1 event types unknown"));
  runtime_.Emit(0, 3);
  runtime_.Emit(1, 3);
  Advance(200 * kNsPerMs);
  Step();
  EXPECT_EQ(ReadOfType(TapRecordType::kFetchDocument).size(), 1u);
}

TEST_F(TapTest, AStartBeforeInitTakesEffectAtInit) {
  Open();
  Step();
  ASSERT_TRUE(agent_.Accept());
  agent_.Send(TapTestStart().Packet());
  Step();
  EXPECT_EQ(ResultOf(agent_.ReadStatuses().back()), TapResult::kAccepted);
  EXPECT_EQ(runtime_.starts, 0);
  gate_.SetInitialised(false, false);
  Step();
  EXPECT_EQ(State(), TapState::kStreaming);
}

TEST_F(TapTest, DrainsAndStopsBeforeTheApplicationCloses) {
  InitAndConnect();
  StartCapture();
  runtime_.Emit(0, 100);
  std::thread application([this] {
    gate_.AcquireForApp(RuntimeGate::Claim::kClose, 0);
    runtime_.fetch_status = kNrtClosed;
    gate_.ReleaseFromApp(RuntimeGate::Claim::kClose);
  });
  while (gate_.waiting().load() == 0) std::this_thread::yield();  // tidy: poll
  Step();
  application.join();
  EXPECT_FALSE(runtime_.running);
  Step();
  EXPECT_EQ(State(), TapState::kClosed);
  std::vector<TapTestRecord> records = agent_.Read();
  ASSERT_GE(records.size(), 4u);
  EXPECT_EQ(records.back().header.type, static_cast<uint16_t>(TapRecordType::kLifecycle));
  const int fetches = runtime_.fetches;
  Advance(kNsPerSecond);
  Step();
  EXPECT_EQ(runtime_.fetches, fetches);
  EXPECT_EQ(runtime_.misuses, 0);
}

TEST_F(TapTest, CaptureContinuesAfterReinit) {
  InitAndConnect();
  StartCapture();
  std::thread application([this] {
    gate_.AcquireForApp(RuntimeGate::Claim::kClose, 0);
    gate_.ReleaseFromApp(RuntimeGate::Claim::kClose);
  });
  while (gate_.waiting().load() == 0) std::this_thread::yield();  // tidy: poll
  Step();
  application.join();
  gate_.SetInitialised(false, false);
  Step();
  EXPECT_EQ(State(), TapState::kStreaming);
  const std::vector<TapTestRecord> started = ReadOfType(TapRecordType::kTraceStarted);
  ASSERT_EQ(started.size(), 2u);
  EXPECT_EQ(started[0].header.flags, 0);
  EXPECT_EQ(started[1].header.flags, kTapRecordFlagResumed);
}

TEST_F(TapTest, YieldsToTheApplicationsProfilerAndComesBack) {
  InitAndConnect();
  StartCapture();
  std::thread application([this] {
    gate_.AcquireForApp(RuntimeGate::Claim::kYield, 0);
    gate_.SetProfiler(RuntimeGate::Profiler::kInspect, true);
    gate_.ReleaseFromApp(RuntimeGate::Claim::kYield);
  });
  while (gate_.waiting().load() == 0) std::this_thread::yield();  // tidy: poll
  Step();
  application.join();
  Step();
  EXPECT_EQ(State(), TapState::kBusyOtherProfiler);
  EXPECT_THAT(agent_.ReadFacts()["tap.detail"], HasSubstr("profiles itself"));
  const int fetches = runtime_.fetches;
  Advance(10 * kNsPerSecond);
  Step();
  EXPECT_EQ(runtime_.fetches, fetches);
  gate_.SetProfiler(RuntimeGate::Profiler::kInspect, false);
  Step();
  EXPECT_EQ(State(), TapState::kStreaming);
  EXPECT_EQ(runtime_.misuses, 0);
}

TEST_F(TapTest, NeverStartsWhileTheRuntimeInspectsItself) {
  Open();
  gate_.SetInitialised(false, true);  // NEURON_RT_INSPECT_ENABLE=1
  Step();
  ASSERT_TRUE(agent_.Accept());
  agent_.Send(TapTestStart().Packet());
  Step();
  EXPECT_EQ(State(), TapState::kBusyOtherProfiler);
  EXPECT_EQ(ResultOf(agent_.ReadStatuses().back()), TapResult::kAccepted);
  EXPECT_EQ(runtime_.starts + runtime_.fetches + runtime_.stops, 0);
}

TEST_F(TapTest, ARefusedStartIsTriedAgainLater) {
  InitAndConnect();
  runtime_.start_status = kNrtFailure;
  agent_.Send(TapTestStart().Packet());
  Step();
  EXPECT_EQ(State(), TapState::kBusyOtherProfiler);
  EXPECT_EQ(agent_.ReadStatuses().back().nrt_status, kNrtFailure);
  runtime_.start_status = kNrtSuccess;
  Advance(Tap::kStartRetryFirstNs - 1);
  Step();
  EXPECT_EQ(runtime_.starts, 0);
  Advance(1);
  Step();
  EXPECT_EQ(State(), TapState::kStreaming);
}

TEST_F(TapTest, ARuntimeWithoutTheFetchFunctionIsTooOld) {
  library_.fetch_events = nullptr;
  Open();
  gate_.SetInitialised(false, false);
  Step();
  ASSERT_TRUE(agent_.Accept());
  EXPECT_EQ(State(), TapState::kRuntimeTooOld);
  agent_.Send(TapTestStart().Packet());
  std::vector<std::string> details;
  Step();
  EXPECT_EQ(ResultOf(agent_.ReadStatuses(&details).back()), TapResult::kUnsupported);
  EXPECT_THAT(details.back(), HasSubstr("nrt_sys_trace_fetch_events"));
  EXPECT_EQ(tap_->Step(), kNeverNs);
}

TEST_F(TapTest, AFetchThatAlwaysFailsEndsTheTrace) {
  InitAndConnect();
  StartCapture();
  runtime_.fetch_status = kNrtFailure;
  for (int i = 0; i < 20 && runtime_.running; ++i) {
    Advance(200 * kNsPerMs);
    Step();
  }
  EXPECT_FALSE(runtime_.running);
  EXPECT_EQ(State(), TapState::kBusyOtherProfiler);
  TapTraceStopped stopped;
  const std::vector<TapTestRecord> records = ReadOfType(TapRecordType::kTraceStopped);
  ASSERT_EQ(records.size(), 1u);
  memcpy(&stopped, records[0].payload.data(), sizeof stopped);
  EXPECT_EQ(stopped.reason, static_cast<uint32_t>(TapStopReason::kFetchFailed));
}

TEST_F(TapTest, DoesNotCallClosedRuntime) {
  InitAndConnect();
  StartCapture();
  runtime_.fetch_status = kNrtClosed;
  const int fetches = runtime_.fetches;
  Advance(200 * kNsPerMs);
  Step();
  EXPECT_EQ(State(), TapState::kClosed);
  Advance(kNsPerSecond);
  Step();
  EXPECT_EQ(runtime_.stops, 0);
  EXPECT_EQ(runtime_.fetches, fetches + 1);
}

TEST_F(TapTest, FactsAreThereForEveryAgentThatAttaches) {
  const char* environment[] = {"RANK=7", "SECRET_TOKEN=x", "SLURM_JWT=y", "NEURONTRACE_JOB=j",
                               nullptr};
  worker_facts_.CaptureEnvironment(environment);
  InitAndConnect();
  worker_facts_.RecordCommunicator(1, 35, 64, "nrt_build_global_comm");
  Step();
  std::map<std::string, std::string> facts = agent_.ReadFacts();
  EXPECT_EQ(facts["communicator.1"], "35 64 nrt_build_global_comm");
  EXPECT_EQ(facts["env.RANK"], "7");
  EXPECT_EQ(facts["env.NEURONTRACE_JOB"], "j");
  EXPECT_EQ(facts.count("env.SECRET_TOKEN"), 0u);
  EXPECT_EQ(facts.count("env.SLURM_JWT"), 0u);
  EXPECT_EQ(facts["runtime.version"], "2.31.24.0 test");
  EXPECT_EQ(facts["runtime.visible_cores"], "2");
  EXPECT_EQ(facts["runtime.event_types"], "nrt_execute,nc_exec_running,cc_running");
  EXPECT_EQ(facts["tap.state"], "idle");
  EXPECT_THAT(facts["process.command_line"], HasSubstr("tap_test"));
}

}  // namespace
}  // namespace neurontrace::tap
