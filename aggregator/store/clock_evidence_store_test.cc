// SPDX-License-Identifier: Apache-2.0
// Evidence comes back as it was measured, of the host and the time asked for, also after the store
// was opened again; what is old goes, but for what a capture needs.
#include "aggregator/store/clock_evidence_store.h"

#include <gtest/gtest.h>

#include "aggregator/store/database.h"
#include "aggregator/store/keys.h"
#include "aggregator/store/store_test_support.h"
#include "lib/trace/clock_evidence_codec.h"
#include "lib/trace/clock_limits.h"

namespace neurontrace {
namespace {

const HostBoot kHost{"i-a", "boot-1"};

ClockEvidence Measured(uint64_t raw_ns) {
  ClockEvidence evidence;
  evidence.snapshots = {
      {.raw_begin_ns = raw_ns, .raw_end_ns = raw_ns + 100, .realtime_ns = raw_ns}};
  evidence.exchanges = {{.send_raw_ns = raw_ns,
                         .reference_receive_ns = 1,
                         .reference_send_ns = 2,
                         .receive_raw_ns = raw_ns + 50,
                         .reference_epoch = 1,
                         .path = ProbePath::kUdp}};
  return evidence;
}

ClockEvidenceBatch Batch(const HostBoot& host, uint64_t at_ns, uint64_t raw_ns) {
  return {host, at_ns, EncodeClockEvidence(Measured(raw_ns))};
}

class ClockEvidenceStoreTest : public testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open() {
    evidence_.reset();
    database_.reset();
    auto database = Database::Open(directory_.path(), nullptr);
    ASSERT_TRUE(database.ok()) << database.status();
    database_ = *std::move(database);
    evidence_ = std::make_unique<ClockEvidenceStore>(*database_, Durability::kSynced);
  }
  std::vector<uint64_t> RawOf(const HostBoot& host, const RealtimeWindow& window = {}) {
    const auto evidence = evidence_->Read(host, window);
    EXPECT_TRUE(evidence.ok()) << evidence.status();
    std::vector<uint64_t> raw;
    for (const ClockExchange& exchange : evidence->exchanges) raw.push_back(exchange.send_raw_ns);
    EXPECT_EQ(evidence->snapshots.size(), raw.size());
    return raw;
  }
  using Raws = std::vector<uint64_t>;

  TemporaryDirectory directory_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<ClockEvidenceStore> evidence_;
};

TEST_F(ClockEvidenceStoreTest, ReturnsEvidencePerHostAndBoot) {
  const HostBoot other_boot{"i-a", "boot-2"};
  const HostBoot longer{"i-ab", "oot-1"};  // the same letters, otherwise divided
  ASSERT_TRUE(evidence_
                  ->Put({Batch(kHost, 100, 7), Batch(kHost, 200, 8), Batch(other_boot, 150, 1),
                         Batch(longer, 150, 2)})
                  .ok());
  Open();
  EXPECT_EQ(RawOf(kHost), (Raws{7, 8}));
  EXPECT_EQ(RawOf(other_boot), Raws{1});
  EXPECT_EQ(RawOf(longer), Raws{2});
  EXPECT_EQ(evidence_->LastMeasuredNs(kHost).value(), 200u);
  EXPECT_EQ(evidence_->LastMeasuredNs(other_boot).value(), 150u);
  EXPECT_EQ(evidence_->LastMeasuredNs({"i-a", "boot-3"}).value(), 0u);
  EXPECT_EQ(RawOf({"i-a", "boot"}), Raws{});
  const auto hosts = evidence_->Hosts();
  ASSERT_TRUE(hosts.ok());
  EXPECT_EQ(*hosts, (std::vector<HostBoot>{kHost, other_boot, longer}));
}

TEST_F(ClockEvidenceStoreTest, ReadsAWindow) {
  for (uint64_t i = 1; i <= 9; ++i) {
    ASSERT_TRUE(evidence_->Put({Batch(kHost, i * 100, i)}).ok());
  }
  EXPECT_EQ(RawOf(kHost, {300, 500}), (Raws{3, 4, 5}));
  EXPECT_EQ(RawOf(kHost, {301, 399}), Raws{});
  EXPECT_EQ(RawOf(kHost, {850, ~uint64_t{0}}), Raws{9});
}

TEST_F(ClockEvidenceStoreTest, Deduplicates) {
  ASSERT_TRUE(evidence_
                  ->Put({Batch(kHost, 100, 9), Batch(kHost, 100, 9), Batch(kHost, 103, 9),
                         Batch(kHost, 104, 3)})
                  .ok());
  EXPECT_EQ(RawOf(kHost), (Raws{3, 9}));
}

TEST_F(ClockEvidenceStoreTest, PrunesOldUnneededEvidence) {
  for (uint64_t i = 1; i <= 9; ++i) {
    ASSERT_TRUE(evidence_->Put({Batch(kHost, i * 100, i), Batch({"i-b", "x"}, i * 100, i)}).ok());
  }
  const auto pruned = evidence_->Prune(750, {{550, 620}, {180, 310}, {250, 260}});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_EQ(pruned->batches, 8u);
  EXPECT_GT(pruned->bytes, 8u * 40);
  EXPECT_EQ(RawOf(kHost), (Raws{2, 3, 6, 8, 9}));
  EXPECT_EQ(RawOf({"i-b", "x"}), (Raws{2, 3, 6, 8, 9}));
  const auto again = evidence_->Prune(750, {{550, 620}, {180, 310}});
  EXPECT_EQ(again->batches, 0u);
  EXPECT_EQ(evidence_->Prune(10'000, {{800, ~uint64_t{0}}})->batches, 6u);
  EXPECT_EQ(RawOf(kHost), (Raws{8, 9}));
}

TEST_F(ClockEvidenceStoreTest, DeduplicatesManyAtOneTime) {
  constexpr uint64_t kBatches = 50;
  const uint64_t each = limits::kClockBatchEntriesMax;
  for (uint64_t batch = 0; batch < kBatches; ++batch) {
    ClockEvidence evidence;
    for (uint64_t i = 0; i < each; ++i) {
      const uint64_t there = batch / 2 * each + i;  // each comes in two batches
      evidence.exchanges.push_back({.send_raw_ns = 7,
                                    .reference_receive_ns = there,
                                    .reference_send_ns = there,
                                    .receive_raw_ns = 8,
                                    .path = ProbePath::kUdp});
    }
    ASSERT_TRUE(evidence_->Put({{kHost, batch, EncodeClockEvidence(evidence)}}).ok());
  }
  const auto evidence = evidence_->Read(kHost, {});
  ASSERT_TRUE(evidence.ok()) << evidence.status();
  ASSERT_EQ(evidence->exchanges.size(), kBatches / 2 * each);
  for (size_t i = 0; i < evidence->exchanges.size(); ++i) {
    ASSERT_EQ(evidence->exchanges[i].reference_receive_ns, i);
  }
}

TEST_F(ClockEvidenceStoreTest, ReportsDamagedKeysWhenPruning) {
  const std::string host(4, '\0');  // without instance and boot
  ASSERT_TRUE(
      database_->Put(Family::kClockObservations, host + std::string(12, '\0'), "x", true).ok());
  ASSERT_TRUE(database_->Put(Family::kClockObservations, host + "\xff", "x", true).ok());
  EXPECT_TRUE(absl::IsDataLoss(evidence_->Prune(~uint64_t{0}, {}).status()));
}

// Behind its keys there is no other.
TEST_F(ClockEvidenceStoreTest, AHostOfAllOnesIsTheLast) {
  const std::string longest(65'535, '\xff');
  const HostBoot host{longest, longest};
  ASSERT_TRUE(evidence_->Put({Batch(kHost, 100, 7)}).ok());
  ASSERT_TRUE(
      database_
          ->Put(Family::kClockObservations,
                keys::WorkerPrefix(longest) + keys::WorkerPrefix(longest) + std::string(12, '\xff'),
                "x", true)
          .ok());
  const auto hosts = evidence_->Hosts();
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_EQ(*hosts, (std::vector<HostBoot>{kHost, host}));
}

TEST_F(ClockEvidenceStoreTest, ReportsDamage) {
  ASSERT_TRUE(evidence_->Put({{kHost, 100, "nonsense"}}).ok());
  EXPECT_TRUE(absl::IsDataLoss(evidence_->Read(kHost, {}).status()));
}

TEST_F(ClockEvidenceStoreTest, StoresEvidenceWithinByteBudget) {
  // An hour of a host: eight exchanges a second in batches of two seconds.
  const HostBoot host{"i-0123456789abcdef0", "5f0c3a52-6f4e-4d69-9f53-3b1f1a8f0c11"};
  SeededRandom random(1);
  uint64_t raw = 1'000'000'000'000;
  for (uint64_t second = 0; second < 3'600; second += 2) {
    ClockEvidence evidence;
    for (uint64_t i = 0; i < 16; ++i) {
      raw += i % 4 == 0 ? 499'900'000 : 12'000 + random.Next64() % 4'000;
      const uint64_t there = raw + 1'700'000'000'000'000'000 + 40'000 + random.Next64() % 20'000;
      evidence.exchanges.push_back({.send_raw_ns = raw,
                                    .reference_receive_ns = there,
                                    .reference_send_ns = there + 5'000 + random.Next64() % 15'000,
                                    .receive_raw_ns = raw + 100'000 + random.Next64() % 40'000,
                                    .reference_epoch = 1,
                                    .path = ProbePath::kUdp});
    }
    evidence.snapshots.push_back({.raw_begin_ns = raw, .raw_end_ns = raw + 100});
    ASSERT_TRUE(evidence_
                    ->Put({{host, 1'700'000'000'000'000'000 + second * 1'000'000'000,
                            EncodeClockEvidence(evidence)}})
                    .ok());
  }
  ASSERT_TRUE(database_->db()
                  .CompactRange({}, database_->family(Family::kClockObservations), nullptr, nullptr)
                  .ok());
  uint64_t bytes = 0;
  ASSERT_TRUE(database_->db().GetIntProperty(database_->family(Family::kClockObservations),
                                             "rocksdb.live-sst-files-size", &bytes));
  EXPECT_LT(bytes / 3'600, 200u);
  RecordProperty("bytes_per_second", static_cast<int>(bytes / 3'600));
}

TEST_F(ClockEvidenceStoreTest, ContinuesEpochOnlyInSameBoot) {
  const auto first = evidence_->ContinueEpoch("boot-1", 500, 1'000);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*first, (ReferenceEpoch{1, "boot-1", 500, 1'000}));
  Open();
  EXPECT_EQ(*evidence_->ContinueEpoch("boot-1", 777, 2'000), *first);
  const auto second = evidence_->ContinueEpoch("boot-2", 900, 3'000);
  EXPECT_EQ(*second, (ReferenceEpoch{2, "boot-2", 900, 3'000}));
  EXPECT_EQ(evidence_->ContinueEpoch("", 1, 4'000)->number, 3u) << "the boot is unknown";
  EXPECT_EQ(evidence_->ContinueEpoch("", 1, 4'000)->number, 4u);
  EXPECT_EQ(evidence_->Epochs()->size(), 4u);
}

}  // namespace
}  // namespace neurontrace
