// SPDX-License-Identifier: Apache-2.0
// A disk without room under the store: nothing is acknowledged that is not stored, what is stored
// can be read, and when there is room again writing continues by itself.
#include "aggregator/store/full_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "aggregator/store/store_test_support.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

class FullDiskTest : public ::testing::Test {
 protected:
  FullDiskTest() : disk_(std::make_shared<FullDisk>()), env_(rocksdb::NewCompositeEnv(disk_)) {}

  absl::StatusOr<std::unique_ptr<Store>> Open() {
    return Store::Open(directory_.path(), {.env = env_.get()});
  }
  static ReceivedChunk BigChunk(uint64_t sequence) {
    ReceivedChunk chunk = TestChunk(1, TestStream(0), sequence);
    chunk.columns.assign(100'000, static_cast<char>('a' + sequence % 26));
    return chunk;
  }
  static absl::StatusOr<std::vector<PutResult>> Put(Store& store, uint64_t sequence) {
    const ReceivedChunk chunk = BigChunk(sequence);
    return store.chunks().PutBatch({&chunk, 1});
  }
  static void ExpectReadable(Store& store, uint64_t chunks) {
    const CaptureReader reader = store.OpenCapture(TestCaptureId(1));
    const auto streams = reader.Streams();
    ASSERT_TRUE(streams.ok()) << streams.status();
    ASSERT_EQ(streams->size(), 1u);
    EXPECT_EQ(streams->front().next_sequence, chunks);
    StoredChunk chunk;
    for (uint64_t sequence = 0; sequence < chunks; ++sequence) {
      EXPECT_TRUE(reader.Stream(0).ReadChunk(sequence, chunk).ok()) << sequence;
    }
  }

  const TemporaryDirectory directory_;
  const std::shared_ptr<FullDisk> disk_;
  const std::unique_ptr<rocksdb::Env> env_;
};

TEST_F(FullDiskTest, NothingIsStoredWithoutRoomAndAllOfItWithRoom) {
  auto store = Open().value();
  ASSERT_TRUE(store->captures().Put(TestCapture(1), true).ok());
  uint64_t next = 0;
  // Wherever in a write the room ends.
  for (const int64_t room : {0, 50, 99'000, 150'000}) {
    SCOPED_TRACE(room);
    ASSERT_TRUE(Put(*store, next++).ok());
    disk_->SetRoom(room);
    absl::Status status;
    while (status.ok()) {
      status = Put(*store, next).status();
      if (status.ok()) ++next;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("the disk is full"));
    // Still full: refused again, and readers are not disturbed.
    EXPECT_EQ(Put(*store, next).status().code(), absl::StatusCode::kResourceExhausted);
    ExpectReadable(*store, next);
    disk_->SetUnlimited();
    const auto stored = Put(*store, next++);
    ASSERT_TRUE(stored.ok()) << stored.status();
    EXPECT_EQ(stored->front().outcome, PutOutcome::kStored);
  }
  store.reset();
  store = Open().value();
  ExpectReadable(*store, next);
  EXPECT_TRUE(store->notes().empty());
}

// RocksDB never resumes where it could not create a file of its log: the store has to say so, as
// the error itself is that of a full disk, which passes.
TEST_F(FullDiskTest, RequiresReopenWhenLogCannotBeCreated) {
  const auto no_space = rocksdb::IOStatus::NoSpace("No space left on device");
  const auto no_quota = rocksdb::IOStatus::IOError("Disk quota exceeded");
  for (const std::string suffix : {"", ".log"}) {
    for (const auto& why : {no_space, no_quota}) {
      SCOPED_TRACE(suffix + ": " + why.ToString());
      const TemporaryDirectory directory;
      const auto open = [&] { return Store::Open(directory.path(), {.env = env_.get()}); };
      auto store = open().value();
      ASSERT_TRUE(store->captures().Put(TestCapture(1), true).ok());
      uint64_t next = 0;
      for (; next < 5; ++next) ASSERT_TRUE(Put(*store, next).ok());
      EXPECT_TRUE(store->ProbeDisk().ok());
      disk_->SetRefuses(suffix, why);
      absl::Status status;
      while (status.ok() && next < 2'000) {  // until RocksDB begins another log
        status = Put(*store, next).status();
        if (status.ok()) ++next;
      }
      EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
      EXPECT_FALSE(Put(*store, next).ok());
      EXPECT_EQ(store->ProbeDisk().ok(), suffix == ".log");
      ExpectReadable(*store, next);
      disk_->SetRefusesNothing();
      EXPECT_TRUE(store->ProbeDisk().ok());
      // Either it continues, or it says what has to be done.
      const auto stored = Put(*store, next);
      if (stored.ok()) ++next;
      EXPECT_EQ(store->must_reopen(), !stored.ok()) << stored.status();
      EXPECT_TRUE(store->must_reopen() || suffix.empty());
      store.reset();
      store = open().value();
      EXPECT_FALSE(store->must_reopen());
      ExpectReadable(*store, next);
      EXPECT_TRUE(Put(*store, next).ok());
      EXPECT_FALSE(std::filesystem::exists(directory.path() + "/0.dbtmp"));
    }
  }
}

TEST_F(FullDiskTest, KeepsStoredDataAfterCrashOnFullDisk) {
  uint64_t next = 0;
  {
    const auto store = Open().value();
    ASSERT_TRUE(store->captures().Put(TestCapture(1), true).ok());
    for (; next < 5; ++next) ASSERT_TRUE(Put(*store, next).ok());
    disk_->SetRoom(40'000);
    EXPECT_FALSE(Put(*store, next).ok());
  }
  const auto full = Open();
  EXPECT_EQ(full.status().code(), absl::StatusCode::kResourceExhausted) << full.status();
  disk_->SetUnlimited();
  const auto store = Open();
  ASSERT_TRUE(store.ok()) << store.status();
  ExpectReadable(**store, next);
  EXPECT_TRUE(Put(**store, next).ok());
}

}  // namespace
}  // namespace neurontrace
