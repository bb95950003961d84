// SPDX-License-Identifier: Apache-2.0
// Goal: whatever an agent does or does not do, the tap keeps its data, its manners and its pace.
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tap/tap_test_support.h"

namespace neurontrace::tap {
namespace {

using ::testing::HasSubstr;

TEST_F(TapTest, TriesAMissingAgentLessAndLessOften) {
  gate_.SetInitialised(false, false);
  EXPECT_TRUE(gate_.ClaimThread());
  tap_ = std::make_unique<Tap>();
  ASSERT_TRUE(tap_->Open(&gate_, &worker_facts_, &library_, &clock_, "/nonexistent/agent.sock",
                         kTapRingBytesMin));
  uint64_t pause = 0;
  for (int i = 0; i < 12; ++i) {
    const uint64_t next = tap_->Step();
    ASSERT_GT(next, now_ns_);
    EXPECT_GE(next - now_ns_, pause);
    pause = next - now_ns_;
    Advance(pause);
  }
  EXPECT_EQ(pause, AgentConnection::kRetryMaxNs);
}

TEST_F(TapTest, SleepsWithoutEndWhenConnectedAndIdle) {
  InitAndConnect();
  EXPECT_EQ(tap_->Step(), kNeverNs);
}

TEST_F(TapTest, AnAgentThatComesBackGetsTheSameBuffer) {
  InitAndConnect();
  StartCapture();
  const ino_t inode = agent_.buffer_inode();
  agent_.Hang();
  runtime_.Emit(0, 10);
  Advance(kNsPerSecond);
  Step();  // notices
  EXPECT_EQ(State(), TapState::kStreaming);
  Advance(kNsPerSecond);
  Step();
  ASSERT_TRUE(agent_.Accept());
  EXPECT_EQ(agent_.buffer_inode(), inode);
  EXPECT_EQ(agent_.hello().capture_id[0], 1);
  EXPECT_EQ(agent_.hello().state, static_cast<uint32_t>(TapState::kStreaming));
  EXPECT_EQ(ReadOfType(TapRecordType::kFetchDocument).size(), 1u);
  EXPECT_EQ(runtime_.starts, 1);
}

TEST_F(TapTest, AnOrphanedCaptureIsStoppedAfterAMinute) {
  InitAndConnect();
  StartCapture();
  agent_.Hang();
  Step();
  Advance(Tap::kOrphanTimeoutNs - 1);
  Step();
  // The socket still listens, so the tap is connected again: take it and hang up for good.
  ASSERT_TRUE(agent_.Accept());
  agent_.Hang();
  unlink(agent_.path().c_str());
  Step();
  EXPECT_TRUE(runtime_.running);
  Advance(Tap::kOrphanTimeoutNs - 1);
  Step();
  EXPECT_TRUE(runtime_.running);
  Advance(1);
  Step();
  EXPECT_FALSE(runtime_.running);
  EXPECT_EQ(State(), TapState::kIdle);
}

TEST_F(TapTest, GarbageEndsConnectionOnly) {
  InitAndConnect();
  StartCapture();
  agent_.Send(std::vector<uint8_t>(100, 0xff));
  Step();
  EXPECT_TRUE(agent_.ConnectionEnded());
  EXPECT_EQ(State(), TapState::kStreaming);
  EXPECT_EQ(tap_->buffer().header()->counters.invalid_commands.load(), 1u);
  Advance(AgentConnection::kRetryMaxNs - 1);
  Step();
  EXPECT_FALSE(agent_.Accept());
  Advance(1);
  Step();
  EXPECT_TRUE(agent_.Accept());
}

TEST_F(TapTest, APacketLargerThanAnyCommandEndsTheConnection) {
  InitAndConnect();
  agent_.Send(std::vector<uint8_t>(kTapMessageBytesMax + 1, 0));
  Step();
  EXPECT_TRUE(agent_.ConnectionEnded());
}

TEST_F(TapTest, AFloodOfCommandsEndsTheConnection) {
  InitAndConnect();
  for (uint32_t i = 0; i < AgentConnection::kCommandBurst + 1; ++i) {
    agent_.Send(TapTestStopPacket(5));
    if (i % 8 == 7) Step();
    agent_.ReadStatuses();
  }
  Step();
  EXPECT_TRUE(agent_.ConnectionEnded());
}

TEST_F(TapTest, AnAgentThatConnectsAndHangsUpIsNotChased) {
  Open();
  gate_.SetInitialised(false, false);
  int connections = 0;
  for (int i = 0; i < 600; ++i) {  // one minute
    Step();
    if (agent_.Accept()) {
      ++connections;
      agent_.Hang();
    }
    Advance(100 * kNsPerMs);
  }
  EXPECT_LE(connections, 20);
  EXPECT_GE(connections, 10);
}

TEST_F(TapTest, WakesTheAgentOnlyIfItWaits) {
  InitAndConnect();
  agent_.WakeIsReadable();
  StartCapture();
  EXPECT_FALSE(agent_.WakeIsReadable());
  agent_.header()->consumer_waiting.store(1);
  runtime_.Emit(0, 1);
  Advance(200 * kNsPerMs);
  Step();
  EXPECT_TRUE(agent_.WakeIsReadable());
  EXPECT_EQ(agent_.header()->consumer_waiting.load(), 0u);
}

TEST_F(TapTest, ASlowAgentCostsNoEventsWhileTheRuntimesRingsHold) {
  InitAndConnect();
  StartCapture();
  agent_.Read();
  constexpr uint64_t kEvents = 20'000;  // seven times what the shared ring holds
  runtime_.Emit(0, kEvents);
  for (int i = 0; i < 50; ++i) {
    Advance(200 * kNsPerMs);
    Step();
  }
  EXPECT_GT(agent_.header()->counters.deferred_fetches.load(), 0u);
  EXPECT_EQ(agent_.header()->counters.refused_documents.load(), 0u);
  EXPECT_GT(runtime_.backlog[0], kEvents / 2);
  // The agent wakes up.
  bool loss_reported = false;
  uint64_t seen = 0;
  for (int i = 0; i < 500 && seen < kEvents; ++i) {
    for (const TapTestRecord& record : agent_.Read()) {
      loss_reported =
          loss_reported || record.header.type == static_cast<uint16_t>(TapRecordType::kLoss);
      for (size_t at = 0; (at = record.payload.find("\"nc_local_id\"", at)) != std::string::npos;
           ++at) {
        ++seen;
      }
    }
    Advance(20 * kNsPerMs);
    Step();
  }
  EXPECT_EQ(seen, kEvents);
  EXPECT_TRUE(loss_reported);  // "fetches were put off", with no document refused
}

TEST_F(TapTest, RefusesAndCountsRemainderAtEnd) {
  InitAndConnect();
  StartCapture();
  runtime_.Emit(0, 20'000);
  agent_.Send(TapTestStopPacket(1));
  Step();
  EXPECT_FALSE(runtime_.running);
  EXPECT_GT(agent_.header()->counters.refused_documents.load(), 0u);
  const std::vector<TapTestRecord> records = agent_.Read();
  TapTraceStopped stopped;
  memcpy(&stopped, records.back().payload.data(), sizeof stopped);
  EXPECT_EQ(stopped.refused_documents, agent_.header()->counters.refused_documents.load());
  const uint64_t refused = agent_.header()->counters.refused_events.load();
  uint64_t stored = 0;
  uint64_t told = 0;
  for (const TapTestRecord& record : records) {
    if (record.header.type == static_cast<uint16_t>(TapRecordType::kLoss)) {
      EXPECT_EQ(record.header.nc_idx, 0u);
      TapLoss loss;
      memcpy(&loss, record.payload.data(), sizeof loss);
      told += loss.refused_events;
    }
    for (size_t at = 0; (at = record.payload.find("\"nc_local_id\"", at)) != std::string::npos;
         ++at) {
      ++stored;
    }
  }
  EXPECT_EQ(stored + refused, 20'000u);  // counted, not estimated
  EXPECT_EQ(told, refused);
}

TEST_F(TapTest, ReleasesRingMemoryOnceCommitted) {
  InitAndConnect();
  StartCapture();
  runtime_.Emit(0, 1000);
  agent_.Send(TapTestStopPacket(1));
  Step();
  const uint64_t in_use = agent_.buffer_blocks();
  Advance(Tap::kReleaseMemoryFirstNs);
  const uint64_t next = tap_->Step();
  EXPECT_EQ(agent_.buffer_blocks(), in_use);  // not committed yet
  EXPECT_EQ(next, now_ns_ + Tap::kReleaseMemoryFirstNs);
  agent_.Read();
  Advance(Tap::kReleaseMemoryFirstNs);
  EXPECT_EQ(tap_->Step(), kNeverNs);
  EXPECT_LT(agent_.buffer_blocks(), in_use / 4);
  // And the ring works as before.
  StartCapture(2);
  runtime_.Emit(0, 1000);
  agent_.Send(TapTestStopPacket(2));
  Step();
  EXPECT_GT(ReadOfType(TapRecordType::kFetchDocument).size(), 0u);
}

TEST_F(TapTest, ABusyCoreDoesNotStarveTheOthers) {
  runtime_.cores = 4;
  InitAndConnect();
  StartCapture();
  runtime_.Emit(0, 100'000);
  for (uint32_t core = 1; core < 4; ++core) runtime_.Emit(core, 10);
  Advance(200 * kNsPerMs);
  Step();
  std::set<uint32_t> seen;
  for (const TapTestRecord& record : ReadOfType(TapRecordType::kFetchDocument)) {
    seen.insert(record.header.nc_idx);
  }
  EXPECT_THAT(seen, ::testing::ElementsAre(0u, 1u, 2u, 3u));
}

TEST_F(TapTest, ARuntimeThatCannotFetchOneCoreIsFetchedWhole) {
  library_.fetch_options_set_nc_idx = nullptr;
  InitAndConnect();
  StartCapture();
  runtime_.Emit(0, 10);
  runtime_.Emit(1, 10);
  Advance(200 * kNsPerMs);
  Step();
  const std::vector<TapTestRecord> documents = ReadOfType(TapRecordType::kFetchDocument);
  ASSERT_EQ(documents.size(), 1u);
  EXPECT_EQ(documents[0].header.nc_idx, kTapNoCore);
}

TEST_F(TapTest, ExitDrainsRemainder) {
  InitAndConnect();
  StartCapture();
  runtime_.Emit(0, 5);
  std::thread application([this] { gate_.AcquireForApp(RuntimeGate::Claim::kExit, 60'000); });
  while (gate_.waiting().load() == 0) std::this_thread::yield();  // tidy: poll
  Step();
  application.join();
  EXPECT_EQ(State(), TapState::kExited);
  const std::vector<TapTestRecord> records = agent_.Read();
  TapLifecycle last;
  memcpy(&last, records.back().payload.data(), sizeof last);
  EXPECT_EQ(last.event, static_cast<uint32_t>(TapLifecycleEvent::kExit));
  EXPECT_FALSE(runtime_.running);
}

TEST(RuntimeGateTest, WaitsAtMostTimeout) {
  RuntimeGate gate;
  ASSERT_TRUE(gate.ClaimThread());
  EXPECT_FALSE(gate.ClaimThread());
  gate.ThreadStarting();
  gate.SetInitialised(false, false);
  ASSERT_TRUE(gate.Enter());  // a thread that hangs in the runtime
  EXPECT_FALSE(gate.AcquireForApp(RuntimeGate::Claim::kExit, 1));
  EXPECT_FALSE(gate.Enter());
}

TEST(RuntimeGateTest, WithoutATapThreadNobodyWaits) {
  RuntimeGate gate;
  gate.SetInitialised(false, false);
  EXPECT_TRUE(gate.AcquireForApp(RuntimeGate::Claim::kClose, 0));
  gate.ReleaseFromApp(RuntimeGate::Claim::kClose);
  EXPECT_FALSE(gate.Enter());
}

TEST(RingBytesTest, AreAPowerOfTwoWithinTheLimits) {
  EXPECT_EQ(RingBytesFromText(nullptr), kTapRingBytesDefault);
  EXPECT_EQ(RingBytesFromText(""), kTapRingBytesDefault);
  EXPECT_EQ(RingBytesFromText("-1"), kTapRingBytesDefault);
  EXPECT_EQ(RingBytesFromText("32M"), kTapRingBytesDefault);
  EXPECT_EQ(RingBytesFromText("1"), kTapRingBytesMin);
  EXPECT_EQ(RingBytesFromText("3000000"), 4194304u);
  EXPECT_EQ(RingBytesFromText("99999999999999999999"), kTapRingBytesMax);
}

TEST(EstimateEventsTest, IsExactForSmallAndCloseForLargeDocuments) {
  const std::string event = "{\"event_type\":\"nrt_execute\",\"phase\":\"start\",\"nc_idx\":0}";
  std::string json = "{\"events\":[" + event;
  EXPECT_EQ(EstimateEvents("{\"events\":[],\"data_version\":2}", 30), 0u);
  for (int i = 1; i < 4000; ++i) json += "," + event;
  json += "],\"data_version\":2}";
  EXPECT_NEAR(static_cast<double>(EstimateEvents(json.data(), json.size())), 4000.0, 80.0);
  EXPECT_EQ(ScanRefused(json.data(), json.size()).events, 4000u);
  EXPECT_EQ(ScanRefused(json.data(), json.size()).ids_end, 0u);
  EXPECT_EQ(ScanRefused("{\"events\":[],\"data_version\":2}", 30).events, 0u);
  const std::string small = "{\"events\":[" + event + "," + event + "],\"data_version\":2}";
  EXPECT_EQ(EstimateEvents(small.data(), small.size()), 2u);
}

TEST(ExamineRefusedTest, FindsTheHighestIdWhateverTheOrder) {
  const auto ids_end = [](const std::string& ids) {
    const std::string json = "{\"events\":[{\"event_type\":\"a\"," + ids +
                             ",\"detail\":\"\\\"nc_local_id\\\":999\"}],\"data_version\":2}";
    return ScanRefused(json.data(), json.size()).ids_end;
  };
  EXPECT_EQ(ids_end("\"nc_local_id\":41,\"x\":{\"nc_local_id\" : 7}"), 42u);
  EXPECT_EQ(ids_end("\"nc_local_id\":0"), 1u);
  EXPECT_EQ(ids_end("\"nc_local_id\":18446744073709551614"), UINT64_MAX);
  EXPECT_EQ(ids_end("\"nc_local_id\":18446744073709551615"), 0u) << "no number of a runtime";
  EXPECT_EQ(ids_end("\"nc_local_id\":99999999999999999999"), 0u);
  EXPECT_EQ(ids_end("\"nc_local_id\":null"), 0u);
  EXPECT_EQ(ScanRefused(std::string(64, '\"').append("\"nc_local_id\":12").data(), 80).ids_end,
            13u);
}

}  // namespace
}  // namespace neurontrace::tap
