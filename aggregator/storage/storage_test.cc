// SPDX-License-Identifier: Apache-2.0
// The store's health as writes succeed and fail, and the sessions that it keeps.
#include "aggregator/storage/storage.h"

#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <memory>
#include <string>

#include "aggregator/aggregator_test_support.h"
#include "aggregator/storage/session_store.h"
#include "aggregator/store/store_test_support.h"
#include "lib/base/temporary_directory.h"

namespace neurontrace {
namespace {

constexpr uint64_t kStorageSecondNs = 1'000'000'000;

class StorageTest : public ::testing::Test {
 protected:
  StorageTest() { clock_.AdvanceNs(kStorageSecondNs); }

  TemporaryDirectory directory_;
  prometheus::Registry registry_;
  HealthState health_;
  FakeClock clock_;
  SeededRandom random_{1};
  const std::unique_ptr<Storage> storage_ =
      Storage::Open({.directory = directory_.path() + "/store", .artifact_bytes = 1'000'000},
                    {registry_, health_, clock_, random_})
          .value();
};

TEST_F(StorageTest, IsReadyOnceItIsOpen) {
  EXPECT_TRUE(health_.ready());
  EXPECT_FALSE(storage_->must_restart());
}

TEST_F(StorageTest, MustRestartWhenWritesFailForLong) {
  storage_->RecordWrite(Storage::Written::kChunks, absl::DataLossError("a block is damaged"));
  EXPECT_FALSE(health_.ready());
  clock_.AdvanceNs(9 * kStorageSecondNs);
  storage_->CheckHealth();
  EXPECT_FALSE(storage_->must_restart());
  clock_.AdvanceNs(2 * kStorageSecondNs);
  storage_->CheckHealth();
  EXPECT_TRUE(storage_->must_restart());
  EXPECT_FALSE(health_.live());
}

TEST_F(StorageTest, WaitsForAFullDiskAndRecoversAfterErrors) {
  storage_->RecordWrite(Storage::Written::kChunks,
                        absl::ResourceExhaustedError("the disk is full"));
  EXPECT_FALSE(health_.ready());
  clock_.AdvanceNs(60 * kStorageSecondNs);
  storage_->CheckHealth();
  EXPECT_FALSE(storage_->must_restart());
  storage_->RecordWrite(Storage::Written::kChunks, absl::DataLossError("a block is damaged"));
  storage_->RecordWrite(Storage::Written::kChunks, absl::OkStatus());
  clock_.AdvanceNs(60 * kStorageSecondNs);
  storage_->CheckHealth();
  EXPECT_FALSE(storage_->must_restart());
  EXPECT_TRUE(health_.ready());
}

// With little room a record still fits where chunks do not: it must not hide that.
TEST_F(StorageTest, AStoredRecordDoesNotHideThatChunksAreRefused) {
  const auto full = absl::ResourceExhaustedError("writing chunks: the disk is full (df)");
  EXPECT_FALSE(storage_->write_problem());
  storage_->RecordWrite(Storage::Written::kChunks, full);
  const uint64_t since_ns = clock_.RealtimeNs();
  storage_->RecordWrite(Storage::Written::kRecord, absl::OkStatus());
  clock_.AdvanceNs(5 * kStorageSecondNs);
  storage_->CheckHealth();
  const auto problem = storage_->write_problem();
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->text, "writing chunks: the disk is full (df)");
  EXPECT_TRUE(problem->is_full);
  EXPECT_EQ(problem->since_realtime_ns, since_ns);
  EXPECT_GT(problem->free_bytes.value_or(0), 0u) << "the test's disk has room";
  EXPECT_FALSE(health_.ready());
  storage_->RecordWrite(Storage::Written::kChunks, absl::OkStatus());
  EXPECT_FALSE(storage_->write_problem());
  EXPECT_TRUE(health_.ready());
  // A record's own failure ends with the next record.
  storage_->RecordWrite(Storage::Written::kRecord, full);
  EXPECT_TRUE(storage_->write_problem());
  storage_->RecordWrite(Storage::Written::kRecord, absl::OkStatus());
  EXPECT_FALSE(storage_->write_problem());
}

// Nobody may write any more, as when the capture was deleted to make room.
TEST_F(StorageTest, FullDiskThatHasRoomAgainIsNoticedWithoutAWrite) {
  const auto full = absl::ResourceExhaustedError("the disk is full");
  for (int second = 0; second < 20; ++second) {
    storage_->RecordWrite(Storage::Written::kChunks, full);
    clock_.AdvanceNs(kStorageSecondNs);
    storage_->CheckHealth();
    EXPECT_TRUE(storage_->write_problem()) << "chunks still fail, although the disk takes a file";
  }
  clock_.AdvanceNs(10 * kStorageSecondNs);
  storage_->CheckHealth();
  EXPECT_FALSE(storage_->write_problem());
  EXPECT_TRUE(health_.ready());
}

TEST_F(StorageTest, CountsTheEndOfEachCaptureOnce) {
  CaptureMetrics metrics(registry_);
  SessionStore sessions({*storage_, clock_, metrics});
  CaptureRecord record = TestCapture(1);
  ASSERT_TRUE(sessions.PutCapture(record, true).ok());
  const std::string name = "neurontrace_aggregator_captures_ended_total";
  EXPECT_EQ(ValuesOf(registry_, name).at("incomplete"), 0);
  record.state = CaptureState::kIncomplete;
  ASSERT_TRUE(sessions.PutCapture(record, false).ok());
  EXPECT_EQ(ValuesOf(registry_, name).at("incomplete"), 1);
  ASSERT_TRUE(sessions.PutCapture(record, true).ok());
  EXPECT_EQ(ValuesOf(registry_, name).at("incomplete"), 1);
}

TEST_F(StorageTest, ReadsTheSessionsOfAnEarlierRun) {
  CaptureMetrics metrics(registry_);
  SessionStore sessions({*storage_, clock_, metrics});
  CaptureRecord record = TestCapture(1);
  ASSERT_TRUE(sessions.PutCapture(record, true).ok());
  auto stored = SessionStore::Read(storage_->store());
  ASSERT_TRUE(stored.ok()) << stored.status();
  ASSERT_EQ(stored->captures.size(), 1u);
  EXPECT_TRUE(stored->HasUnendedCapture());
  record.state = CaptureState::kComplete;
  ASSERT_TRUE(sessions.PutCapture(record, true).ok());
  stored = SessionStore::Read(storage_->store());
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_FALSE(stored->HasUnendedCapture());
}

}  // namespace
}  // namespace neurontrace
