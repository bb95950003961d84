// SPDX-License-Identifier: Apache-2.0
// What captures of a job may store, by what is stored of it.
#include "aggregator/storage/store_quota.h"

#include <gtest/gtest.h>

#include <memory>

#include "aggregator/store/store_test_support.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

constexpr uint64_t kQuota = 1'000'000;

class StoreQuotaTest : public ::testing::Test {
 protected:
  StoreQuotaTest() {
    quota_.Set({.job_bytes = kQuota});
    const WorkerInfo worker{
        .identity = TestStream(0).worker, .state = WorkerState::kStreaming, .job = "llama"};
    EXPECT_TRUE(store_->inventory().PutWorker({.info = worker, .agent_id = "agent-a"}).ok());
    EXPECT_TRUE(store_->captures().Put(TestCapture(1), true).ok());
    EXPECT_TRUE(store_->captures().Put(TestCapture(2), true).ok());
  }
  uint64_t Put(uint8_t capture, uint64_t sequence) {
    const ReceivedChunk chunk = TestChunk(capture, TestStream(0), sequence);
    EXPECT_TRUE(store_->chunks().PutBatch({&chunk, 1}).ok());
    return chunk.bytes();
  }
  uint64_t LeftOf(const std::string& job) {
    return quota_.Admit({}, {job}, std::nullopt).value().bytes;
  }

  FakeClock clock_{1'000 * kNsPerSecond};
  std::unique_ptr<Store> store_ = Store::Open("/store", {.in_memory = true}).value();
  StoreQuota quota_{*store_, clock_};
};

TEST_F(StoreQuotaTest, AllCapturesOfAJobCountForIt) {
  const uint64_t first = Put(1, 0);
  EXPECT_EQ(LeftOf("llama"), kQuota - first);
  EXPECT_EQ(LeftOf("other"), kQuota);
  // What came since is known when it has been read again, which is not here.
  const uint64_t second = Put(2, 0);
  EXPECT_EQ(LeftOf("llama"), kQuota - first);
  ASSERT_TRUE(quota_.Refresh(5 * kNsPerSecond).ok());
  EXPECT_EQ(LeftOf("llama"), kQuota - first);  // it is young enough
  clock_.AdvanceNs(5 * kNsPerSecond);
  ASSERT_TRUE(quota_.Refresh(5 * kNsPerSecond).ok());
  EXPECT_EQ(LeftOf("llama"), kQuota - first - second);
  ASSERT_TRUE(store_->DeleteCapture(TestCaptureId(1)).ok());
  ASSERT_TRUE(quota_.Refresh(0).ok());
  EXPECT_EQ(LeftOf("llama"), kQuota - second);
}

}  // namespace
}  // namespace neurontrace
