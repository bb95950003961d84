// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/chunk_committer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "aggregator/store/full_disk.h"
#include "aggregator/store/store_test_support.h"
#include "lib/base/clock.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;

// Remembers each change of the store's health.
class HealthRecorder final : public CommitObserver {
 public:
  void OnWriteHealth(const absl::Status& status) override { codes_.push_back(status.code()); }
  const std::vector<absl::StatusCode>& codes() const { return codes_; }

 private:
  std::vector<absl::StatusCode> codes_;
};

class ChunkCommitterTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(store_->captures().Put(TestCapture(1), true).ok()); }
  void Commit(uint64_t sequence) {
    ChunkCommitter::Group group;
    group.chunks.push_back(TestChunk(1, TestStream(0), sequence));
    group.dones.push_back([](const absl::StatusOr<PutResult>&) {});
    const ReceivedChunk& chunk = group.chunks.front();
    budget_.Take(chunk.header.stream.agent_id, chunk.bytes());
    committer_.Commit(group);
    EXPECT_EQ(budget_.bytes(), 0u);
  }

  const TemporaryDirectory directory_;
  const std::shared_ptr<FullDisk> disk_ = std::make_shared<FullDisk>();
  const std::unique_ptr<rocksdb::Env> env_ = rocksdb::NewCompositeEnv(disk_);
  const std::unique_ptr<Store> store_ = Store::Open(directory_.path(), {.env = env_.get()}).value();
  FakeClock clock_;
  IngestBudget budget_{1 << 20};
  prometheus::Registry registry_;
  IngestMetrics metrics_{registry_};
  HealthRecorder health_;
  ChunkCommitter committer_{store_->chunks(), budget_, metrics_, clock_, health_};
};

// A full disk passes, one that fails does not: whoever waits for the first has to hear of the
// second, though no write succeeded between them.
TEST_F(ChunkCommitterTest, ReportsEachFailedWriteAndFirstThatWorksAgain) {
  Commit(0);
  EXPECT_THAT(health_.codes(), ElementsAre());
  disk_->SetRoom(0);
  Commit(1);
  Commit(1);
  const auto full = absl::StatusCode::kResourceExhausted;
  EXPECT_THAT(health_.codes(), ElementsAre(full, full));
  disk_->SetUnlimited();
  disk_->SetFails(true);
  Commit(1);
  EXPECT_THAT(health_.codes(), ElementsAre(full, full, absl::StatusCode::kUnavailable));
}

TEST_F(ChunkCommitterTest, DuplicateDoesNotChangeDiskHealth) {
  Commit(0);
  disk_->SetRoom(0);
  Commit(1);
  Commit(0);  // is stored already: nothing is written
  EXPECT_THAT(health_.codes(), ElementsAre(absl::StatusCode::kResourceExhausted));
  disk_->SetUnlimited();
  Commit(1);
  EXPECT_THAT(health_.codes(),
              ElementsAre(absl::StatusCode::kResourceExhausted, absl::StatusCode::kOk));
}

}  // namespace
}  // namespace neurontrace
