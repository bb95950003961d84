// SPDX-License-Identifier: Apache-2.0
// Continuous captures stay as old and as large as they are to be, ended ones go when their time is
// over: on a store in memory, by a clock that is set.
#include "aggregator/retention/capture_retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/align/core/clock_maps.h"
#include "aggregator/store/store_test_support.h"
#include "lib/base/clock.h"
#include "lib/base/time_units.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

constexpr uint64_t kHourNs = 3'600 * kNsPerSecond;

// An aggregator in which little happens; tests change what it answers.
class FakeRetentionEnvironment final : public RetentionEnvironment {
 public:
  explicit FakeRetentionEnvironment(const Clock& clock) : clock_(clock) {}

  uint64_t ForwardSince(uint64_t) const override { return set_forward_ns; }
  uint64_t ReferenceNs() const override { return clock_.RealtimeNs(); }
  absl::StatusOr<ClockMaps> ReadClockMaps() override { return ClockMaps(); }
  bool ReleaseForDeletion(const CaptureId&) override {
    if (on_release) on_release();
    return may_delete;
  }
  void PauseAfterStep(uint64_t) override { ++pauses; }
  bool IsEnding() const override { return pauses >= ends_at_pause; }
  void OnExpired(const Expired& report) override { expired.push_back(report); }

  uint64_t set_forward_ns = 0;
  bool may_delete = true;
  std::function<void()> on_release;  // the last moment before a deletion
  int pauses = 0;
  int ends_at_pause = INT_MAX;
  std::vector<Expired> expired;

 private:
  const Clock& clock_;
};

class CaptureRetentionTest : public ::testing::Test {
 protected:
  CaptureRetentionTest() : store_(Store::Open("/store", {.in_memory = true}).value()) {
    retention_ =
        std::make_unique<CaptureRetention>(CaptureRetention::Deps{.store = *store_,
                                                                  .clock = clock_,
                                                                  .leases = leases_,
                                                                  .changes = changes_,
                                                                  .metrics = metrics_,
                                                                  .environment = environment_});
  }

  CaptureRecord Continuous(uint64_t retention_ns, uint64_t retention_bytes) {
    CaptureRecord record = TestCapture(1);
    record.spec.mode = CaptureMode::kContinuous;
    record.spec.retention.duration_ns = retention_ns;
    record.spec.retention.bytes = retention_bytes;
    record.started_realtime_ns = clock_.RealtimeNs();
    EXPECT_TRUE(store_->captures().Put(record, true).ok());
    return record;
  }
  // One chunk of a stream with ten events of this moment, by a clock that is so far ahead.
  void Put(uint32_t nc_idx, uint64_t ahead_ns = 0) {
    ReceivedChunk chunk =
        TestChunk(1, TestStream(nc_idx, "agent-" + std::to_string(nc_idx)), sequences_[nc_idx]);
    chunk.header.events_before = 10 * sequences_[nc_idx]++;
    chunk.header.first_timestamp_ns = clock_.RealtimeNs() + ahead_ns;
    chunk.header.last_timestamp_ns = chunk.header.first_timestamp_ns + 1'000;
    const auto results = store_->chunks().PutBatch({&chunk, 1});
    ASSERT_TRUE(results.ok()) << results.status();
    ASSERT_EQ(results->front().outcome, PutOutcome::kStored);
  }
  // Samples of the seconds until now, in one chunk.
  void PutHost(int seconds) {
    StreamIdentity stream = TestStream(limits::kNoNcIdx, "agent-0");
    stream.kind = StreamKind::kHost;
    ReceivedChunk chunk = TestChunk(1, stream, sequences_[limits::kNoNcIdx]);
    chunk.header.events_before = 10 * sequences_[limits::kNoNcIdx]++;
    chunk.header.last_timestamp_ns = clock_.RealtimeNs();
    chunk.header.first_timestamp_ns = clock_.RealtimeNs() - seconds * kNsPerSecond;
    const auto results = store_->chunks().PutBatch({&chunk, 1});
    ASSERT_TRUE(results.ok()) << results.status();
    ASSERT_EQ(results->front().outcome, PutOutcome::kStored);
  }
  void PassSeconds(int seconds, const std::vector<uint64_t>& ahead_ns) {
    for (int i = 0; i < seconds; ++i) {
      for (uint32_t core = 0; core < ahead_ns.size(); ++core) Put(core, ahead_ns[core]);
      clock_.AdvanceNs(kNsPerSecond);
      ASSERT_TRUE(retention_->Run().ok());
    }
  }
  std::vector<StreamRecord> Streams() {
    return store_->OpenCapture(TestCaptureId(1)).Streams().value();
  }
  bool Exists(uint8_t n) { return store_->captures().Get(TestCaptureId(n)).ok(); }

  FakeClock clock_{1'000'000 * kHourNs};
  std::unique_ptr<Store> store_;
  prometheus::Registry registry_;
  RetentionMetrics metrics_{registry_};
  ExportLeases leases_;
  ChangedRetentions changes_;
  FakeRetentionEnvironment environment_{clock_};
  std::map<uint32_t, uint64_t> sequences_;
  std::unique_ptr<CaptureRetention> retention_;
};

TEST_F(CaptureRetentionTest, KeepsLastSecondsOfRunningCapture) {
  Continuous(8 * kNsPerSecond, 0);
  PassSeconds(100, {0, 0});
  for (const StreamRecord& stream : Streams()) {
    EXPECT_GE(stream.chunks, 7u);
    EXPECT_LE(stream.chunks, 9u);
    EXPECT_EQ(stream.events + stream.events_expired(), 1'000u);
    EXPECT_EQ(stream.events_lost(), 0u);
    EXPECT_TRUE(stream.Conserved());
    EXPECT_GE(stream.first_timestamp_ns + 9 * kNsPerSecond, clock_.RealtimeNs());
  }
  EXPECT_GE(metrics_.events_expired.Value(), 2 * 900.0);
  EXPECT_GT(environment_.pauses, 0);
}

TEST_F(CaptureRetentionTest, AHostWhoseClockIsOffLosesNoMoreThanOthers) {
  Continuous(8 * kNsPerSecond, 0);
  PassSeconds(100, {0, kHourNs, ~kHourNs + 1});
  for (const StreamRecord& stream : Streams()) {
    EXPECT_GE(stream.chunks, 7u);
    EXPECT_LE(stream.chunks, 10u);
  }
  EXPECT_EQ(metrics_.streams_by_receipt.Value(), 2.0);
}

TEST_F(CaptureRetentionTest, StreamsByReceiptAreThoseOfAllThatRun) {
  CaptureRecord other = Continuous(8 * kNsPerSecond, 0);
  other.id = TestCaptureId(2);
  ASSERT_TRUE(store_->captures().Put(other, true).ok());
  PassSeconds(20, {0, kHourNs});
  EXPECT_EQ(metrics_.streams_by_receipt.Value(), 1.0);
  ASSERT_TRUE(store_->DeleteCapture(TestCaptureId(1)).ok());
  ASSERT_TRUE(retention_->Run().ok());
  EXPECT_EQ(metrics_.streams_by_receipt.Value(), 0.0);
}

TEST_F(CaptureRetentionTest, BeyondItsBytesTheOldestOfAllStreamsGo) {
  Continuous(0, 0);
  Put(0);
  const uint64_t chunk_bytes = store_->chunks().BytesOf(TestCaptureId(1)).value();
  Continuous(0, 20 * chunk_bytes);
  PassSeconds(5, {0, 0});
  // One stream falls silent: what is left of it goes first.
  const uint64_t before = Streams()[1].events;
  EXPECT_GT(before, 0u);
  for (int i = 0; i < 60; ++i) {
    Put(0);
    clock_.AdvanceNs(kNsPerSecond);
    ASSERT_TRUE(retention_->Run().ok());
  }
  EXPECT_EQ(Streams()[1].events, 0u);
  const uint64_t bytes = store_->chunks().BytesOf(TestCaptureId(1)).value();
  EXPECT_LE(bytes, 20 * chunk_bytes);
  EXPECT_GT(bytes, 15 * chunk_bytes);
}

TEST_F(CaptureRetentionTest, LongChunksOfHostsMakeItNoCoarser) {
  Continuous(0, 0);
  Put(0);
  const uint64_t chunk_bytes = store_->chunks().BytesOf(TestCaptureId(1)).value();
  Continuous(0, 60 * chunk_bytes);
  for (int i = 1; i <= 120; ++i) {
    Put(0);
    Put(1);
    clock_.AdvanceNs(kNsPerSecond);
    if (i % 20 == 0) PutHost(20);
    if (i % 10 != 0) continue;
    ASSERT_TRUE(retention_->Run().ok());
    EXPECT_LE(store_->chunks().BytesOf(TestCaptureId(1)).value(), 60 * chunk_bytes);
    const std::vector<StreamRecord> streams = Streams();
    EXPECT_NEAR(static_cast<double>(streams[0].chunks), static_cast<double>(streams[1].chunks), 3)
        << "after " << i << " s";
  }
  const StreamRecord host = Streams()[2];
  ASSERT_EQ(host.identity.kind, StreamKind::kHost);
  EXPECT_GT(host.events_expired(), 0u) << "host samples expire too";
  EXPECT_GT(host.events, 0u);
}

TEST_F(CaptureRetentionTest, OthersThatRunAreLeftAlone) {
  CaptureRecord record = Continuous(kNsPerSecond, 1);
  record.spec.mode = CaptureMode::kStream;
  ASSERT_TRUE(store_->captures().Put(record, true).ok());
  PassSeconds(20, {0});
  EXPECT_EQ(Streams()[0].events, 200u);
  EXPECT_TRUE(Exists(1));
}

TEST_F(CaptureRetentionTest, AnEndedCaptureGoesWhenItsTimeIsOver) {
  CaptureRecord record = Continuous(kHourNs, 0);
  record.spec.mode = CaptureMode::kStream;
  record.state = CaptureState::kComplete;
  record.ended_realtime_ns = clock_.RealtimeNs();
  ASSERT_TRUE(store_->captures().Put(record, true).ok());
  CaptureRecord kept = TestCapture(2);  // for ever
  kept.state = CaptureState::kComplete;
  ASSERT_TRUE(store_->captures().Put(kept, true).ok());
  ASSERT_TRUE(retention_->Run().ok());
  EXPECT_TRUE(Exists(1));
  clock_.AdvanceNs(kHourNs);
  {
    const auto lease = leases_.Take(TestCaptureId(1));
    ASSERT_NE(lease, nullptr);
    ASSERT_TRUE(retention_->Run().ok());
    EXPECT_TRUE(Exists(1)) << "it is being exported";
  }
  environment_.may_delete = false;
  ASSERT_TRUE(retention_->Run().ok());
  EXPECT_TRUE(Exists(1));
  environment_.may_delete = true;
  ASSERT_TRUE(retention_->Run().ok());
  EXPECT_FALSE(Exists(1));
  EXPECT_TRUE(Exists(2));
  EXPECT_EQ(metrics_.captures_deleted.Value(), 1.0);
  ASSERT_EQ(environment_.expired.size(), 1u);
  EXPECT_TRUE(environment_.expired[0].is_whole);
  EXPECT_EQ(environment_.expired[0].capture, TestCaptureId(1));
}

TEST_F(CaptureRetentionTest, AnEndedCaptureFollowsItsChangedRetention) {
  CaptureRecord record = TestCapture(1);
  record.state = CaptureState::kComplete;
  record.spec.retention.duration_ns = kHourNs;
  record.started_realtime_ns = record.ended_realtime_ns = clock_.RealtimeNs();
  const auto keep_for = [&](uint64_t retention_ns) {
    record.spec.retention.duration_ns = retention_ns;
    ASSERT_TRUE(store_->captures().Put(record, true).ok());
    changes_.Add(record.id);
  };
  keep_for(kHourNs);
  ASSERT_TRUE(retention_->Run().ok());
  keep_for(3 * kHourNs);
  clock_.AdvanceNs(2 * kHourNs);
  ASSERT_TRUE(retention_->Run().ok());
  EXPECT_TRUE(Exists(1)) << "it was made longer";
  keep_for(0);
  ASSERT_TRUE(retention_->Run().ok());
  clock_.AdvanceNs(2 * kHourNs);
  ASSERT_TRUE(retention_->Run().ok());
  EXPECT_TRUE(Exists(1)) << "it has no limit";
  keep_for(4 * kHourNs + kNsPerSecond);
  ASSERT_TRUE(retention_->Run().ok());
  EXPECT_TRUE(Exists(1));
  clock_.AdvanceNs(kNsPerSecond);
  ASSERT_TRUE(retention_->Run().ok());
  EXPECT_FALSE(Exists(1)) << "it was made shorter";
}

TEST_F(CaptureRetentionTest, ARunningCaptureFollowsItsChangedRetentionAtOnce) {
  CaptureRecord record = Continuous(800 * kNsPerSecond, 0);
  PassSeconds(20, {0});
  EXPECT_EQ(Streams()[0].chunks, 20u);
  record.spec.retention.duration_ns = 8 * kNsPerSecond;
  ASSERT_TRUE(store_->captures().Put(record, true).ok());
  ASSERT_TRUE(retention_->Run().ok());
  EXPECT_EQ(Streams()[0].chunks, 20u) << "its next pass is not due yet";
  changes_.Add(record.id);
  ASSERT_TRUE(retention_->Run().ok());
  EXPECT_LE(Streams()[0].chunks, 9u);
  record.spec.retention.duration_ns = 30 * kNsPerSecond;
  ASSERT_TRUE(store_->captures().Put(record, true).ok());
  changes_.Add(record.id);
  PassSeconds(60, {0});
  EXPECT_GE(Streams()[0].chunks, 29u);
  EXPECT_LE(Streams()[0].chunks, 35u);
}

// The capture was made to be kept longer between the look at its record and its deletion.
TEST_F(CaptureRetentionTest, AChangeJustBeforeTheDeletionCounts) {
  CaptureRecord record = TestCapture(1);
  record.state = CaptureState::kComplete;
  record.spec.retention.duration_ns = kHourNs;
  record.started_realtime_ns = record.ended_realtime_ns = clock_.RealtimeNs();
  ASSERT_TRUE(store_->captures().Put(record, true).ok());
  clock_.AdvanceNs(kHourNs);
  environment_.on_release = [&] {
    record.spec.retention.duration_ns = 2 * kHourNs;
    EXPECT_TRUE(store_->captures().Put(record, true).ok());
  };
  ASSERT_TRUE(retention_->Run().ok());
  EXPECT_TRUE(Exists(1));
  environment_.on_release = nullptr;
  clock_.AdvanceNs(kHourNs);
  ASSERT_TRUE(retention_->Run().ok());
  EXPECT_FALSE(Exists(1));
}

TEST_F(CaptureRetentionTest, ReportsExpiredDataAtEndOfCapture) {
  Continuous(8 * kNsPerSecond, 0);
  PassSeconds(100, {0});
  EXPECT_TRUE(environment_.expired.empty()) << "expiry is logged as occasional totals";
  PassSeconds(600, {0});
  ASSERT_EQ(environment_.expired.size(), 1u);
  EXPECT_FALSE(environment_.expired[0].is_whole);
  retention_.reset();
  ASSERT_EQ(environment_.expired.size(), 2u);
  EXPECT_EQ(environment_.expired[0].events + environment_.expired[1].events,
            Streams()[0].events_expired());
}

TEST_F(CaptureRetentionTest, ReportsExpiredDataOfInterruptedPass) {
  CaptureRecord other = Continuous(8 * kNsPerSecond, 0);
  other.id = TestCaptureId(2);
  ASSERT_TRUE(store_->captures().Put(other, true).ok());
  PassSeconds(20, {0});
  ASSERT_TRUE(environment_.expired.empty());
  environment_.ends_at_pause = environment_.pauses + 1;  // after a step in the first capture
  PassSeconds(1, {0});
  ASSERT_EQ(environment_.pauses, environment_.ends_at_pause);
  retention_ = nullptr;
  ASSERT_EQ(environment_.expired.size(), 1u);
  EXPECT_EQ(static_cast<double>(environment_.expired[0].events), metrics_.events_expired.Value());
}

TEST_F(CaptureRetentionTest, AStoppedContinuousCaptureStaysAsItIs) {
  CaptureRecord record = Continuous(8 * kNsPerSecond, 0);
  PassSeconds(20, {0});
  record.state = CaptureState::kComplete;
  record.ended_realtime_ns = clock_.RealtimeNs();
  ASSERT_TRUE(store_->captures().Put(record, true).ok());
  const uint64_t events = Streams()[0].events;
  clock_.AdvanceNs(kHourNs);
  ASSERT_TRUE(retention_->Run().ok());
  EXPECT_EQ(Streams()[0].events, events);
  EXPECT_TRUE(Exists(1));
}

TEST(ExportLeases, ADeletionAndAnExportKeepEachOtherAway) {
  ExportLeases leases;
  auto first = leases.Take(TestCaptureId(1));
  auto second = leases.Take(TestCaptureId(1));
  first.reset();
  EXPECT_EQ(leases.ClaimForDeletion(TestCaptureId(1)), nullptr);
  second.reset();
  auto claim = leases.ClaimForDeletion(TestCaptureId(1));
  EXPECT_NE(claim, nullptr);
  EXPECT_EQ(leases.Take(TestCaptureId(1)), nullptr);
  EXPECT_NE(leases.Take(TestCaptureId(2)), nullptr);
  claim.reset();
  EXPECT_NE(leases.Take(TestCaptureId(1)), nullptr);
}

// The aggregator was restarted after somebody had set the clock ten days forward.
TEST_F(CaptureRetentionTest, NothingExpiresEarlyBecauseTheClockWasSetForward) {
  CaptureRecord record = TestCapture(1);
  record.state = CaptureState::kComplete;
  record.spec.retention.duration_ns = kHourNs;
  record.started_realtime_ns = record.ended_realtime_ns = clock_.RealtimeNs();
  ASSERT_TRUE(store_->captures().Put(record, true).ok());
  environment_.set_forward_ns = 10 * 24 * kHourNs;
  clock_.StepRealtimeNs(10 * 24 * kHourNs);
  ASSERT_TRUE(retention_->Run().ok());
  EXPECT_TRUE(Exists(1));
  clock_.AdvanceNs(kHourNs - kNsPerSecond);
  ASSERT_TRUE(retention_->Run().ok());
  EXPECT_TRUE(Exists(1));
  clock_.AdvanceNs(2 * kNsPerSecond);
  ASSERT_TRUE(retention_->Run().ok());
  EXPECT_FALSE(Exists(1));
}

}  // namespace
}  // namespace neurontrace
