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
  storage_->RecordWrite(absl::DataLossError("a block is damaged"));
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
  storage_->RecordWrite(absl::ResourceExhaustedError("the disk is full"));
  EXPECT_FALSE(health_.ready());
  clock_.AdvanceNs(60 * kStorageSecondNs);
  storage_->CheckHealth();
  EXPECT_FALSE(storage_->must_restart());
  storage_->RecordWrite(absl::DataLossError("a block is damaged"));
  storage_->RecordWrite(absl::OkStatus());
  clock_.AdvanceNs(60 * kStorageSecondNs);
  storage_->CheckHealth();
  EXPECT_FALSE(storage_->must_restart());
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
