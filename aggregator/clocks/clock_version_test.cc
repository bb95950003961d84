// SPDX-License-Identifier: Apache-2.0
// When the clocks of a capture are fitted, stored, given again and fitted again: through its end,
// the time that evidence needs, restarts, late evidence, other builds, damage and a full disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "aggregator/clocks/clock_finalizer.h"
#include "aggregator/clocks/clock_model_cache.h"
#include "aggregator/clocks/clock_rows.h"
#include "aggregator/clocks/clock_rows_test_support.h"
#include "aggregator/store/full_disk.h"
#include "aggregator/store/store_test_support.h"
#include "lib/trace/clock_evidence_codec.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kSecond = kTestSecond;
constexpr uint64_t kVersionStart = kTestStart;
constexpr uint64_t kEnd = kVersionStart + 50 * kSecond;

class ClockVersionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    record_ = TestCapture(1);
    record_.started_realtime_ns = kVersionStart + 40 * kSecond;
    Open();
    AddStream("agent-a");
    AddEvidence("i-agent-a", 20, 50);
  }
  void Open() {
    book_.reset();
    store_.reset();
    store_ = Store::Open(directory_.path(), {.env = env_.get()}).value();
    ASSERT_TRUE(store_->captures().Put(record_, true).ok());
    book_ = std::make_unique<ClockModelCache>(*store_, clock_, metrics_);
  }
  void End() {
    record_.state = CaptureState::kComplete;
    record_.ended_realtime_ns = kEnd;
    ASSERT_TRUE(store_->captures().Put(record_, true).ok());
    clock_ = FakeClock(kEnd);
  }
  void AddStream(const std::string& agent_id, uint64_t sequence = 0) {
    const ReceivedChunk chunk = TestChunk(1, TestStream(0, agent_id), sequence);
    ASSERT_TRUE(store_->chunks().PutBatch({&chunk, 1}).ok());
  }
  // Of seconds `from` to `to`, a batch every two seconds; a lag of `late_ns` over the ways.
  void AddEvidence(const std::string& instance_id, uint64_t from, uint64_t to,
                   uint64_t late_ns = 0) {
    const ClockEvidence all = SomeEvidence(to);
    for (uint64_t s = from; s < to; s += 2) {
      const auto is_in = [&](uint64_t raw) {
        return raw >= s * kSecond && raw < (s + 2) * kSecond;
      };
      ClockEvidence batch;
      for (ClockExchange exchange : all.exchanges) {
        exchange.receive_raw_ns += late_ns;
        if (is_in(exchange.send_raw_ns)) batch.exchanges.push_back(exchange);
      }
      for (const ClockSnapshot& snapshot : all.snapshots) {
        if (is_in(snapshot.raw_begin_ns)) batch.snapshots.push_back(snapshot);
      }
      ASSERT_TRUE(store_->clocks()
                      .Put({{.host = {instance_id, "boot"},
                             .measured_realtime_ns = kVersionStart + (s + 2) * kSecond,
                             .observations = EncodeClockEvidence(batch)}})
                      .ok());
    }
  }
  CaptureClocks Clocks() {
    const auto clocks = book_->ForCapture(record_);
    EXPECT_TRUE(clocks.ok()) << clocks.status();
    return clocks.value_or(CaptureClocks());
  }
  // Expects this version, and gives its bytes.
  std::vector<std::string> Rows(uint32_t version, bool is_final) {
    const CaptureClocks clocks = Clocks();
    EXPECT_EQ(clocks.version, version);
    EXPECT_EQ(clocks.is_final, is_final);
    return EncodeClockRows(clocks);
  }
  std::vector<uint32_t> Versions() { return store_->clock_models().Versions(record_.id).value(); }
  // Changes what is said of the stored version.
  void EditRecord(const std::function<void(ClockFitRecord&)>& edit) {
    ClockModelVersion models = *store_->clock_models().Newest(record_.id).value();
    ClockFitRecord record = DecodeClockFitRecord(models.header).value();
    edit(record);
    models.header = EncodeClockFitRecord(record);
    ASSERT_TRUE(store_->clock_models().Put(record_.id, models).ok());
  }

  const TemporaryDirectory directory_;
  std::unique_ptr<rocksdb::Env> env_;
  FakeClock clock_{kEnd - kSecond};
  prometheus::Registry registry_;
  ClockModelCacheMetrics metrics_{registry_};
  CaptureRecord record_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<ClockModelCache> book_;
};

TEST_F(ClockVersionTest, StoresNothingForRunningCapture) {
  const auto rows = Rows(0, false);
  AddEvidence("i-agent-a", 50, 60);
  EXPECT_NE(Rows(0, false), rows);
  EXPECT_THAT(Versions(), IsEmpty());
}

TEST_F(ClockVersionTest, StaysUntilAllEvidenceIsThereAndThenIsFinal) {
  End();
  const auto first = Rows(1, false);
  AddEvidence("i-agent-a", 50, 90);
  clock_.AdvanceNs(ClockModelCache::kMarginNs);
  EXPECT_EQ(Rows(1, false), first);
  Open();
  EXPECT_EQ(Rows(1, false), first);
  clock_.AdvanceNs(ClockModelCache::kArrivalNs);
  const auto last = Rows(2, true);
  EXPECT_NE(last, first);
  EXPECT_LE(DecodeClockRows(last)->instances[0].bound_ns,
            DecodeClockRows(first)->instances[0].bound_ns);
  Open();
  clock_.AdvanceNs(3'600 * kSecond);
  EXPECT_EQ(Rows(2, true), last);
  EXPECT_THAT(Versions(), ElementsAre(1u, 2u));
  EXPECT_EQ(metrics_.fits.Value(), 2);
  EXPECT_EQ(metrics_.versions_stored.Value(), 2);
}

TEST_F(ClockVersionTest, AFitOfTheSameEvidenceIsTheSameToTheBit) {
  End();
  clock_ = FakeClock(ClockModelCache::FinalAtNs(record_));
  const auto rows = Rows(1, true);
  const std::string header = **store_->clock_models().NewestHeader(record_.id);
  ASSERT_TRUE(store_->clock_models().Delete(record_.id).ok());
  EXPECT_EQ(Rows(1, true), rows);
  EXPECT_EQ(**store_->clock_models().NewestHeader(record_.id), header);
}

TEST_F(ClockVersionTest, RecordsEvidenceOfFit) {
  End();
  clock_ = FakeClock(ClockModelCache::FinalAtNs(record_));
  Rows(1, true);
  const auto record = DecodeClockFitRecord(**store_->clock_models().NewestHeader(record_.id));
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_TRUE(record->is_final);
  EXPECT_TRUE(AreFittedAlike(*record, FitRecordOfThisBuild({})));
  EXPECT_EQ(record->window.begin_ns, record_.started_realtime_ns - ClockModelCache::kMarginNs);
  EXPECT_EQ(record->window.end_ns, kEnd + ClockModelCache::kMarginNs);
  EXPECT_EQ(record->chunks, 1u);
  ASSERT_EQ(record->evidence.size(), 1u);
  const ClockWatermark& mark = record->evidence[0];
  EXPECT_EQ(mark.host, (HostBoot{"i-agent-a", "boot"}));
  EXPECT_EQ(mark.stored.batches, 15u);
  EXPECT_EQ(mark.stored.last_measured_realtime_ns, kVersionStart + 50 * kSecond);
  EXPECT_EQ(mark.last_raw_ns, 49 * kSecond + kSecond / 2 + 61'000);
}

TEST_F(ClockVersionTest, EvidenceThatComesLateMakesAnotherFinalVersion) {
  End();
  clock_ = FakeClock(ClockModelCache::FinalAtNs(record_));
  const auto rows = Rows(1, true);
  AddEvidence("i-agent-a", 50, 70);  // of an agent that was away
  EXPECT_NE(Rows(2, true), rows);
  // What says nothing new makes none, and is not looked at again.
  AddEvidence("i-agent-a", 60, 70);
  Rows(2, true);
  const double fits = metrics_.fits.Value();
  Rows(2, true);
  EXPECT_EQ(metrics_.fits.Value(), fits);
  AddEvidence("i-agent-a", 90, 95);  // beyond the window
  Rows(2, true);
  EXPECT_EQ(metrics_.fits.Value(), fits);
}

TEST_F(ClockVersionTest, AMachineThatComesLateIsNotWaitedForToBeFinal) {
  End();
  Rows(1, false);
  AddEvidence("i-agent-b", 20, 60);
  EXPECT_EQ(Rows(1, false).size(), 1u);
  AddStream("agent-b");
  EXPECT_EQ(Rows(2, false).size(), 2u);
  AddStream("agent-b", 1);  // device clocks may be other ones
  Rows(2, false);
  const double fits = metrics_.fits.Value();
  Rows(2, false);
  EXPECT_EQ(metrics_.fits.Value(), fits);
}

TEST_F(ClockVersionTest, OtherBuildRefitsIfEvidenceExists) {
  End();
  clock_ = FakeClock(ClockModelCache::FinalAtNs(record_));
  const auto rows = Rows(1, true);
  EditRecord([](ClockFitRecord& record) { --record.host_algorithm; });
  const double fits = metrics_.fits.Value();
  EXPECT_EQ(Rows(1, true), rows) << "the same models: no new version";
  EXPECT_EQ(metrics_.fits.Value(), fits + 1);
  Rows(1, true);
  EXPECT_EQ(metrics_.fits.Value(), fits + 1);
}

TEST_F(ClockVersionTest, WithoutItsEvidenceAVersionStaysWhateverTheBuild) {
  End();
  AddEvidence("i-agent-a", 50, 90);
  clock_ = FakeClock(ClockModelCache::FinalAtNs(record_));
  const auto rows = Rows(1, true);
  EditRecord([](ClockFitRecord& record) { --record.host_algorithm; });
  ASSERT_GT(store_->clocks().Prune(kVersionStart + 60 * kSecond, {})->batches, 0u);
  EXPECT_EQ(Rows(1, true), rows);
}

TEST_F(ClockVersionTest, VersionWithoutEvidenceBecomesFinal) {
  End();
  const auto rows = Rows(1, false);
  ASSERT_GT(store_->clocks().Prune(kVersionStart + 45 * kSecond, {})->batches, 0u);
  clock_ = FakeClock(ClockModelCache::FinalAtNs(record_));
  EXPECT_EQ(Rows(2, true), rows);
  EXPECT_EQ(Rows(2, true), rows);
}

TEST_F(ClockVersionTest, RefitsForeignVersion) {
  End();
  const auto rows = Rows(1, false);
  ASSERT_TRUE(store_->clock_models().Put(record_.id, {7, "of another time", {"a", "b"}}).ok());
  EXPECT_EQ(Rows(8, false), rows);
  ASSERT_TRUE(store_->clock_models()
                  .Put(record_.id, {9, **store_->clock_models().NewestHeader(record_.id), {"a"}})
                  .ok());
  EXPECT_EQ(Rows(10, false), rows);
}

TEST_F(ClockVersionTest, WithoutEvidenceThereIsAVersionAllTheSame) {
  ASSERT_GT(store_->clocks().Prune(UINT64_MAX, {})->batches, 0u);
  End();
  clock_ = FakeClock(ClockModelCache::FinalAtNs(record_));
  EXPECT_THAT(Rows(1, true), IsEmpty());
  EXPECT_THAT(Versions(), ElementsAre(1u));
  EXPECT_THAT(Rows(1, true), IsEmpty());
  EXPECT_EQ(metrics_.fits.Value(), 1);
}

TEST_F(ClockVersionTest, StoresNothingForDeletedCapture) {
  End();
  ASSERT_TRUE(store_->DeleteCapture(record_.id).ok());
  EXPECT_EQ(Clocks().version, 0u);
  EXPECT_THAT(Versions(), IsEmpty());
}

TEST_F(ClockVersionTest, AStoreThatTakesNoWritesCostsTheVersionAndNothingElse) {
  book_.reset();
  store_.reset();
  const auto disk = std::make_shared<FullDisk>();
  env_ = rocksdb::NewCompositeEnv(disk);
  Open();
  End();
  disk->SetRoom(0);
  const auto rows = Rows(0, false);
  EXPECT_EQ(rows.size(), 1u);
  EXPECT_EQ(metrics_.versions_not_stored.Value(), 1);
  EXPECT_EQ(Rows(0, false), rows);
  disk->SetUnlimited();
  EXPECT_EQ(Rows(1, false), rows) << "independent of RocksDB's background work";
  EXPECT_EQ(metrics_.versions_not_stored.Value(), 2);
  book_.reset();
  store_.reset();
}

TEST_F(ClockVersionTest, ConcurrentRequestsGetSameVersion) {
  End();
  std::vector<CaptureClocks> got(6);
  std::vector<std::thread> threads;
  for (CaptureClocks& clocks : got) {
    threads.emplace_back([this, &clocks] { clocks = book_->ForCapture(record_).value(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const CaptureClocks& clocks : got) {
    EXPECT_EQ(clocks.version, 1u);
    EXPECT_EQ(EncodeClockRows(clocks), EncodeClockRows(got[0]));
  }
  EXPECT_EQ(metrics_.fits.Value(), 1);
  EXPECT_THAT(Versions(), ElementsAre(1u));
}

TEST_F(ClockVersionTest, AfterCloseNothingIsFitted) {
  End();
  book_->Close();
  EXPECT_TRUE(absl::IsCancelled(book_->ForCapture(record_).status()));
  EXPECT_TRUE(absl::IsCancelled(book_->Now(clock_.RealtimeNs()).status()));
}

TEST_F(ClockVersionTest, FinalizerStoresUnrequestedVersions) {
  ClockFinalizer finalizer(*store_, *book_);
  ASSERT_TRUE(finalizer.Run().ok());
  End();
  clock_.AdvanceNs(ClockModelCache::kMarginNs);
  ASSERT_TRUE(finalizer.Run().ok());
  EXPECT_THAT(Versions(), IsEmpty()) << "the models are not due yet";
  clock_.AdvanceNs(ClockModelCache::kArrivalNs);
  ASSERT_TRUE(finalizer.Run().ok());
  EXPECT_THAT(Versions(), ElementsAre(1u));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(finalizer.Run().ok());
  ASSERT_TRUE(ClockFinalizer(*store_, *book_).Run().ok());  // after a restart
  EXPECT_EQ(metrics_.fits.Value(), 1);
  Rows(1, true);
  ASSERT_TRUE(store_->DeleteCapture(record_.id).ok());
  ASSERT_TRUE(finalizer.Run().ok());
}

TEST_F(ClockVersionTest, FinalizerSkipsUnreadableCapture) {
  End();
  clock_ = FakeClock(ClockModelCache::FinalAtNs(record_));
  CaptureRecord second = record_;
  second.id = TestCaptureId(2);
  ASSERT_TRUE(store_->captures().Put(second, true).ok());
  ASSERT_TRUE(store_->clocks()
                  .Put({{.host = {"i-agent-a", "boot"},
                         .measured_realtime_ns = kEnd,
                         .observations = "nonsense"}})
                  .ok());
  ClockFinalizer finalizer(*store_, *book_);
  EXPECT_TRUE(absl::IsDataLoss(finalizer.Run()));
  EXPECT_THAT(store_->clock_models().Versions(second.id).value(), ElementsAre(1u));
}

}  // namespace
}  // namespace neurontrace
