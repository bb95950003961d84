// SPDX-License-Identifier: Apache-2.0
// Goal: what a tap refuses is one loss with the right place and number, whatever hole it leaves in
// the sequence, and what is said of headroom is measured or not said.
#include "agent/source/neuron/tap_source.h"

#include "agent/source/neuron/tap_source_fixture.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TapLossesTest : public TapSourceTest {
 protected:
  void Begin() {
    Connect();
    StartAndRecord();
  }
  void WriteRefused(uint32_t core, uint64_t events, uint64_t ids_end = 0) {
    tap_.WriteLoss({.refused_documents = 1,
                    .refused_bytes = events * 350,
                    .refused_events = events,
                    .first_realtime_ns = 5,
                    .last_realtime_ns = 6,
                    .refused_ids_end = ids_end},
                   capture_, core);
  }
  void StopAndPass() {
    source_->Stop(capture_, Source::kStopNow);
    AnswerStop();
    Pass(300);
  }
  std::map<uint32_t, uint64_t> LostByCore(LossPlace place) const {
    std::map<uint32_t, uint64_t> lost;
    for (const RecordingSink::Entry& entry : sink_.entries) {
      for (const Loss& loss : entry.chunk.header.losses) {
        if (loss.place == place && loss.events > 0) {
          lost[entry.chunk.header.stream.nc_idx] += loss.events;
        }
      }
    }
    return lost;
  }
};

using Lost = std::map<uint32_t, uint64_t>;

TEST_F(TapLossesTest, ARefusedDocumentAndItsHoleAreOneLossOfTheirCore) {
  Begin();
  tap_.WriteDocument(Document(0, 0, 2), capture_, 0);
  tap_.WriteDocument(Document(1, 0, 2), capture_, 1);
  WriteRefused(0, 8, 10);                              // 2 to 9
  tap_.WriteDocument(Document(1, 5, 1), capture_, 1);  // 2 to 4 were overwritten
  tap_.WriteDocument(Document(0, 10, 1), capture_, 0);
  tap_.WriteDocument(Document(0, 13, 1), capture_, 0);  // 11 and 12 were
  StopAndPass();
  EXPECT_EQ(LostByCore(LossPlace::kTapBuffer), (Lost{{0, 8}}));
  EXPECT_EQ(LostByCore(LossPlace::kRuntimeRing), (Lost{{0, 2}, {1, 3}}));
}

TEST_F(TapLossesTest, AHoleWiderThanWhatWasRefusedIsTheRuntimesForTheRest) {
  Begin();
  tap_.WriteDocument(Document(0, 0, 2), capture_, 0);
  WriteRefused(0, 8, 12);
  WriteRefused(0, 4, 17);
  tap_.WriteDocument(Document(0, 20, 1), capture_, 0);  // a hole of 18
  StopAndPass();
  EXPECT_EQ(LostByCore(LossPlace::kTapBuffer), (Lost{{0, 12}}));
  EXPECT_EQ(LostByCore(LossPlace::kRuntimeRing), (Lost{{0, 6}}));
}

TEST_F(TapLossesTest, RefusalAtEndNeedsNoHole) {
  Begin();
  tap_.WriteDocument(Document(0, 0, 2), capture_, 0);
  WriteRefused(0, 8, 12);  // 2 and 3 were overwritten
  WriteRefused(3, 5, 8);   // of a core that nothing else came from: 0 to 2 were
  WriteRefused(4, 5);      // events without numbers
  StopAndPass();
  EXPECT_EQ(LostByCore(LossPlace::kTapBuffer), (Lost{{0, 8}, {3, 5}, {4, 5}}));
  EXPECT_EQ(LostByCore(LossPlace::kRuntimeRing), (Lost{{0, 2}, {3, 3}}));
  EXPECT_EQ(metrics_.tap_documents_refused.load(), 3u);
}

TEST_F(TapLossesTest, AssignsRefusalsOfAllCoresToTheirHoles) {
  Begin();
  tap_.WriteDocument(Document(0, 0, 2), capture_);
  tap_.WriteDocument(Document(1, 0, 2), capture_);
  WriteRefused(kTapNoCore, 10);
  tap_.WriteDocument(Document(0, 5, 1), capture_);
  tap_.WriteDocument(Document(1, 6, 1), capture_);
  StopAndPass();
  EXPECT_EQ(LostByCore(LossPlace::kTapBuffer), (Lost{{0, 3}, {1, 4}, {limits::kNoNcIdx, 3}}));
  EXPECT_THAT(LostByCore(LossPlace::kRuntimeRing), IsEmpty());
}

TEST_F(TapLossesTest, AHoleBehindAFailedFetchHasNoKnownReason) {
  Begin();
  tap_.WriteDocument(Document(0, 0, 2), capture_, 0);
  tap_.WriteLoss({.failed_fetches = 1}, capture_, 0);
  tap_.WriteDocument(Document(0, 5, 1), capture_, 0);
  tap_.WriteDocument(Document(0, 8, 1), capture_, 0);
  StopAndPass();
  ASSERT_EQ(sink_.Losses().size(), 2u);
  EXPECT_EQ(sink_.Losses()[0].place, LossPlace::kRuntimeRing);
  EXPECT_EQ(sink_.Losses()[0].reason, LossReason::kUnknown);
  EXPECT_EQ(sink_.Losses()[0].events, 3u);
  EXPECT_THAT(sink_.Losses()[0].detail, HasSubstr("failed"));
  EXPECT_EQ(sink_.Losses()[1].reason, LossReason::kOverwritten);
  EXPECT_EQ(sink_.Losses()[1].events, 2u);
  EXPECT_EQ(metrics_.tap_fetches_failed.load(), 1u);
}

TEST_F(TapLossesTest, FetchesPutOffAreNoLoss) {
  Begin();
  tap_.WriteDocument(Document(0, 0, 2), capture_, 0);
  tap_.WriteLoss({.deferred_fetches = 7}, capture_, 0);
  tap_.WriteDocument(Document(0, 2, 2), capture_, 0);
  StopAndPass();
  EXPECT_THAT(sink_.Losses(), IsEmpty());
  EXPECT_EQ(metrics_.tap_fetches_deferred.load(), 7u);
}

TEST_F(TapLossesTest, RecordsWithoutRoomAreALossOfUnknownNumber) {
  Begin();
  tap_.WriteDocument(Document(0, 0, 2), capture_, 0);
  Deliver();
  tap_.header().counters.refused_control_records.store(1);
  Pass(300);
  StopAndPass();
  ASSERT_EQ(sink_.Losses().size(), 1u);
  EXPECT_EQ(sink_.Losses()[0].place, LossPlace::kTapBuffer);
  EXPECT_TRUE(sink_.Losses()[0].events_unknown);
}

TEST_F(TapLossesTest, TapWithoutLossReportsNothing) {
  tap_.header().counters.deferred_fetches.store(3);  // of a time before this agent
  Begin();
  tap_.WriteDocument(Document(0, 0, 2), capture_, 0);
  Pass(300);
  StopAndPass();
  EXPECT_THAT(sink_.Losses(), IsEmpty());
}

TEST_F(TapLossesTest, ReportsRecordsRefusedWithoutAgentOnConnect) {
  tap_.header().counters.refused_control_records.store(3);
  Begin();
  Pass(600);
  StopAndPass();
  ASSERT_EQ(sink_.Losses().size(), 1u);
  EXPECT_TRUE(sink_.Losses()[0].events_unknown);
}

TEST_F(TapLossesTest, ReportsRefusalOnceAcrossAgentRestart) {
  for (size_t stored = 0; stored <= 3; ++stored) {
    SCOPED_TRACE(stored);
    FakeTap tap;
    tap.Seal(F_SEAL_SHRINK | F_SEAL_GROW);
    sink_.entries.clear();
    MakeSource();
    const auto connect = [&](const CaptureId& running) {
      UniqueFd agent_end = tap.Connect(running);
      const int fd = agent_end.get();
      source_->AddConnection(std::move(agent_end));
      runner_.FireWatch(fd);
      runner_.RunUntilIdle();
    };
    source_->ApplyOrder(SourceOrder::Start(capture_, {}, {}));
    connect(CaptureId());
    tap.WriteStarted(capture_);
    tap.WriteDocument(Document(0, 1, 5), capture_, 0);
    Pass(600);
    tap.WriteLoss({.refused_documents = 1,
                   .refused_events = 4,
                   .first_realtime_ns = 1,
                   .refused_ids_end = 10},
                  capture_, 0);
    Pass(600);
    tap.WriteDocument(Document(0, 12, 1), capture_, 0);  // 6 to 9 refused, 10 and 11 overwritten
    Pass(600);
    for (size_t i = 0; i < std::min(stored, sink_.entries.size()); ++i) sink_.Answer(i, true);
    Pass(300);
    std::erase_if(sink_.entries, [](const auto& entry) { return !entry.stored; });
    MakeSource();
    connect(capture_);
    source_->ApplyOrder(SourceOrder::Start(capture_, {}, sink_.Cursors()));
    Pass(300);
    source_->Stop(capture_, Source::kStopNow);
    tap.WriteStopped(capture_, TapStopReason::kCommand);
    Pass(600);
    EXPECT_EQ(sink_.Events().size(), 6u);
    EXPECT_EQ(LostByCore(LossPlace::kTapBuffer), (Lost{{0, 4}}));
    EXPECT_EQ(LostByCore(LossPlace::kRuntimeRing), (Lost{{0, 2}}));
  }
}

class TapHeadroomTest : public TapLossesTest {
 protected:
  // `per_document` events of core 0 every 100 ms, read at once.
  void Stream(int documents, uint64_t per_document, uint16_t flags = 0) {
    for (int i = 0; i < documents; ++i) {
      Pass(100);
      tap_.realtime_ns = clock_.RealtimeNs();
      tap_.Write(TapRecordType::kFetchDocument, Document(0, next_, per_document), capture_, 0,
                 flags);
      next_ += per_document;
      source_->ApplyOrder(SourceOrder::Start(capture_, {}, {}));  // a turn
      runner_.RunUntilIdle();
      sink_.StoreAll();
    }
  }
  double RingSeconds() {
    const std::map<uint32_t, uint64_t> rings = source_->headroom().rings;
    return rings.contains(0) ? static_cast<double>(rings.at(0)) / 1e9 : -1;
  }
  uint64_t next_ = 0;
};

TEST_F(TapHeadroomTest, ReportsNothingBeforeMeasurementAndAfterTrace) {
  EXPECT_THAT(source_->headroom().rings, IsEmpty());
  Begin();
  EXPECT_THAT(source_->headroom().rings, IsEmpty());
  EXPECT_FALSE(source_->headroom().buffer);
  Stream(5, 100);
  EXPECT_EQ(source_->headroom().rings.size(), 1u);
  EXPECT_TRUE(source_->headroom().buffer);
  StopAndPass();
  EXPECT_THAT(source_->headroom().rings, IsEmpty());
}

TEST_F(TapHeadroomTest, HeadroomFollowsFillRate) {
  Begin();
  Stream(20, 100);  // 1000 a second into a ring of 65536
  EXPECT_NEAR(RingSeconds(), 65.5, 1);
}

TEST_F(TapHeadroomTest, CountsOverwrittenAsFilled) {
  Begin();
  for (int i = 0; i < 20; ++i) {
    Stream(1, 50);
    next_ += 50;
  }
  EXPECT_NEAR(RingSeconds(), 65.5, 1);
}

TEST_F(TapHeadroomTest, CountsRemainderOfFullFetch) {
  Begin();
  Stream(20, 100);
  const double before = RingSeconds();
  Stream(1, 10, kTapRecordFlagMore);  // a tenth of what must have come
  EXPECT_LT(RingSeconds(), before);
}

TEST_F(TapHeadroomTest, ASilentCoreGainsTime) {
  Begin();
  Stream(20, 100);
  Pass(5'000);
  EXPECT_GT(RingSeconds(), 300);
  Pass(1'000'000);
  EXPECT_NEAR(RingSeconds(), static_cast<double>(limits::kHeadroomMaxNs) / 1e9, 1);
}

TEST_F(TapHeadroomTest, WhileTheTapPutsFetchesOffTheTimeRunsOut) {
  Begin();
  Stream(20, 100);
  for (int i = 0; i < 25; ++i) {
    tap_.header().counters.deferred_fetches.fetch_add(1);
    Pass(200);
  }
  EXPECT_NEAR(RingSeconds(), 65.5 - 5, 1);
}

TEST_F(TapHeadroomTest, ABufferThatNobodyReleasesFills) {
  Begin();
  const auto write = [&] {
    Pass(200);
    tap_.Write(TapRecordType::kFetchDocument, Document(0, next_, 100), capture_, 0);
    next_ += 100;
  };
  for (int i = 0; i < 10; ++i) write();
  const std::optional<uint64_t> before = source_->headroom().buffer;
  ASSERT_TRUE(before);
  EXPECT_LT(*before, 30 * kNsPerSecond);  // some 70 kB a second into what is left of 1 MiB
  for (int i = 0; i < 10; ++i) write();
  EXPECT_LT(*source_->headroom().buffer, *before);
}

TEST_F(TapLossesTest, RefusedRecordsAreNoLossOfPendingCapture) {
  Connect();
  source_->ApplyOrder(SourceOrder::Arm(capture_, {}, {}));
  CaptureSpec spec;
  spec.mode = CaptureMode::kFlightRecorder;
  source_->ApplyOrder(SourceOrder::Start(other_, spec, {}));
  ASSERT_TRUE(tap_.ReadCommand());
  tap_.SetState(TapState::kHolding);
  tap_.WriteStarted(other_);
  tap_.Answer(TapMessageType::kStart, TapResult::kOk, other_);
  Deliver();
  tap_.header().counters.refused_control_records.store(1);
  Pass(1'000);
  source_->Flush();
  EXPECT_THAT(sink_.entries, IsEmpty());
}

}  // namespace
}  // namespace neurontrace
