// SPDX-License-Identifier: Apache-2.0
// Which writes are synced, counted where RocksDB asks the file system for it, and that a killed
// program leaves everything behind in either.
#include "aggregator/store/durability.h"

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "aggregator/store/capture_store.h"
#include "aggregator/store/chunk_store.h"
#include "aggregator/store/database.h"
#include "aggregator/store/store.h"
#include "aggregator/store/store_test_support.h"

namespace neurontrace {
namespace {

// The machine's file system, which counts how often write-ahead logs are synced.
class CountingEnv : public rocksdb::EnvWrapper {
 public:
  CountingEnv() : EnvWrapper(rocksdb::Env::Default()) {}
  const char* Name() const override { return "CountingEnv"; }

  rocksdb::Status NewWritableFile(const std::string& name,
                                  std::unique_ptr<rocksdb::WritableFile>* file,
                                  const rocksdb::EnvOptions& options) override {
    const rocksdb::Status status = target()->NewWritableFile(name, file, options);
    if (status.ok() && name.ends_with(".log")) {
      *file = std::make_unique<CountingFile>(std::move(*file), [this] {
        ++log_syncs_;
        if (while_syncing_) while_syncing_();
      });
    }
    return status;
  }

  int log_syncs() const { return log_syncs_; }
  void WhileSyncing(std::function<void()> then) { while_syncing_ = std::move(then); }

 private:
  class CountingFile : public rocksdb::WritableFileWrapper {
   public:
    CountingFile(std::unique_ptr<rocksdb::WritableFile> file, std::function<void()> on_sync)
        : WritableFileWrapper(file.get()), file_(std::move(file)), on_sync_(std::move(on_sync)) {}
    rocksdb::Status Sync() override {
      on_sync_();
      return file_->Sync();
    }
    rocksdb::Status Fsync() override {
      on_sync_();
      return file_->Fsync();
    }

   private:
    std::unique_ptr<rocksdb::WritableFile> file_;
    const std::function<void()> on_sync_;
  };

  int log_syncs_ = 0;
  std::function<void()> while_syncing_;
};

// How many syncs of the log ten batches of chunks cost.
int SyncsOfTenBatches(Durability durability) {
  const TemporaryDirectory directory;
  CountingEnv env;
  const auto database = Database::Open(directory.path(), &env).value();
  CaptureStore captures(*database);
  EXPECT_TRUE(captures.Put(TestCapture(1), true).ok());
  ChunkStore chunks(*database, durability);
  const int before = env.log_syncs();
  for (uint64_t sequence = 0; sequence < 10; ++sequence) {
    const ReceivedChunk chunk = TestChunk(1, TestStream(0), sequence);
    const auto results = chunks.PutBatch({&chunk, 1});
    EXPECT_TRUE(results.ok()) << results.status();
    EXPECT_EQ(results->front().outcome, PutOutcome::kStored);
  }
  return env.log_syncs() - before;
}

TEST(Durability, SyncedSyncsEveryBatchOfChunks) {
  EXPECT_EQ(SyncsOfTenBatches(Durability::kSynced), 10);
}

TEST(Durability, PageCacheSyncsNone) { EXPECT_EQ(SyncsOfTenBatches(Durability::kPageCache), 0); }

TEST(Durability, SizeQueryDoesNotWaitForDisk) {
  const TemporaryDirectory directory;
  CountingEnv env;
  const auto database = Database::Open(directory.path(), &env).value();
  CaptureStore captures(*database);
  ASSERT_TRUE(captures.Put(TestCapture(1), true).ok());
  ChunkStore chunks(*database, Durability::kSynced);
  ASSERT_EQ(chunks.BytesOf(TestCaptureId(1)).value(), 0u);
  uint64_t asked_meanwhile = UINT64_MAX;
  env.WhileSyncing([&] { asked_meanwhile = chunks.BytesOf(TestCaptureId(1)).value(); });
  const ReceivedChunk chunk = TestChunk(1, TestStream(0), 0);
  ASSERT_TRUE(chunks.PutBatch({&chunk, 1}).ok());
  EXPECT_EQ(asked_meanwhile, 0u);
  EXPECT_EQ(chunks.BytesOf(TestCaptureId(1)).value(), chunk.bytes());
}

// What a store has whose program is killed: the kernel's view of its files, at that moment.
TEST(Durability, PageCacheSurvivesTheEndOfTheProgram) {
  const TemporaryDirectory directory;
  const TemporaryDirectory killed;
  const auto store = Store::Open(directory.path(), {.durability = Durability::kPageCache}).value();
  ASSERT_TRUE(store->captures().Put(TestCapture(1), true).ok());
  for (uint64_t sequence = 0; sequence < 10; ++sequence) {
    const ReceivedChunk chunk = TestChunk(1, TestStream(0), sequence);
    ASSERT_TRUE(store->chunks().PutBatch({&chunk, 1}).ok());
  }
  std::filesystem::copy(
      directory.path(), killed.path(),
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  const auto reopened = Store::Open(killed.path(), {.durability = Durability::kPageCache}).value();
  const auto cursors = reopened->chunks().Cursors(TestCaptureId(1), "agent-a").value();
  ASSERT_EQ(cursors.size(), 1u);
  EXPECT_EQ(cursors[0].next_sequence, 10u);
}

TEST(Durability, TheDefaultIsSynced) { EXPECT_EQ(StoreOptions().durability, Durability::kSynced); }

}  // namespace
}  // namespace neurontrace
