// SPDX-License-Identifier: Apache-2.0
// What a store holds that it cannot have written, as a damaged disk or a backup of who knows whom
// may have it: it opens all the same, after one rebuild at most. aggregator/store_recovery_test.cc
// has what damage of real files does to chunks.
#include "aggregator/store/store_rebuild.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/file_system.h>

#include <filesystem>
#include <memory>
#include <string>

#include "aggregator/store/keys.h"
#include "aggregator/store/store_test_support.h"
#include "trace/clock_evidence_codec.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

absl::StatusOr<ReceivedChunk> NoChunk(std::string_view, std::string_view, uint32_t) {
  return absl::InternalError("no chunk");
}

// The machine's disk; no table in the store's own directory can be read while it is worn.
class WornDisk final : public rocksdb::FileSystemWrapper {
 public:
  WornDisk() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "WornDisk"; }
  bool is_worn = true;

  rocksdb::IOStatus NewRandomAccessFile(const std::string& name,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* context) override {
    const bool is_own = name.find("/rebuilding/") == std::string::npos;
    if (is_worn && is_own && name.ends_with(".sst")) return rocksdb::IOStatus::Corruption(name);
    return FileSystemWrapper::NewRandomAccessFile(name, options, file, context);
  }
};

class StoreRebuildTest : public ::testing::Test {
 protected:
  const std::string& path() const { return directory_.path(); }
  size_t SetAside() const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path())) {
      if (entry.path().filename().string().starts_with("damaged-")) ++count;
    }
    return count;
  }
  absl::StatusOr<std::unique_ptr<Store>> Open(rocksdb::Env* env = nullptr) {
    return Store::Open(path(), {.env = env, .examine = NoChunk, .aggregator_id = "aggregator-1"});
  }
  void Put(Family family, const std::string& key, const std::string& value) {
    const auto database = Database::Open(path(), nullptr);
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE((*database)->Put(family, key, value, true).ok());
    ASSERT_TRUE((*database)->Flush().ok());
  }

  const TemporaryDirectory directory_;
};

TEST_F(StoreRebuildTest, RowsThatCannotBeReadAreNotRebuilt) {
  const HostBoot host{"i-a", "boot-1"};
  {
    const auto store = Open();
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->inventory().PutAgent({.info = {.agent_id = "agent-a"}}).ok());
    ASSERT_TRUE((*store)->clocks().TakeEpoch("boot-1", 5, 6).ok());
    ASSERT_EQ((*store)->clocks().TakeEpoch("boot-2", 5, 6)->number, 2u);
    ASSERT_TRUE((*store)->clocks().Put({{host, 100, EncodeClockEvidence({})}}).ok());
    ASSERT_TRUE((*store)->clocks().Put({{host, 200, "nonsense"}}).ok());
  }
  const std::string bad = "\x7f";
  Put(Family::kAgents, "agent-b", bad);
  Put(Family::kWorkers, "worker", bad);
  Put(Family::kClockObservations, "a key of another form", bad);
  Put(Family::kMeta, std::string("reference_epoch/\0\0\0\2", 20), bad);
  Put(Family::kMeta, "reference_epoch/x", bad);
  for (int start = 0; start < 2; ++start) {
    const auto store = Open();
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ(SetAside(), 1u);
    if (start == 0) {
      EXPECT_THAT((*store)->notes(), Contains(HasSubstr("; 6 places could not be read")));
    }
    const auto agents = (*store)->inventory().Agents();
    ASSERT_TRUE(agents.ok()) << agents.status();
    EXPECT_THAT(*agents, SizeIs(1));
    EXPECT_EQ((*store)->clocks().ExtentOf(host, {})->batches, 1u);
    ASSERT_TRUE((*store)->clocks().Read(host, {}).ok());
    // The number of a lost epoch stays taken: evidence names it.
    const auto epoch = (*store)->clocks().TakeEpoch("boot-2", 5, 6);
    ASSERT_TRUE(epoch.ok()) << epoch.status();
    EXPECT_EQ(epoch->number, 3u);
  }
}

// Its chunks would go as those of a capture that was deleted.
TEST_F(StoreRebuildTest, ACaptureWhoseRecordCannotBeReadWasNotDeleted) {
  Put(Family::kCaptures, keys::Capture(TestCaptureId(1)), "\x7f");
  Put(Family::kChunks, keys::Chunk(TestCaptureId(1), 0, 0), "a chunk");
  const auto store = Open();
  ASSERT_TRUE(store.ok()) << store.status();
  const auto record = (*store)->captures().Get(TestCaptureId(1));
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->spec.name, "recovered");
}

TEST_F(StoreRebuildTest, WhatARebuildDoesNotMendIsNotRebuiltAtEachStart) {
  { ASSERT_TRUE(Open().ok()); }
  Put(Family::kMeta, "key", "value");
  const auto disk = std::make_shared<WornDisk>();
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(disk);
  const std::string mark = path() + "/REBUILT_IN_VAIN";
  for (int start = 0; start < 3; ++start) {
    const auto store = Open(env.get());
    EXPECT_TRUE(absl::IsDataLoss(store.status())) << store.status();
    EXPECT_THAT(std::string(store.status().message()), HasSubstr(mark));
    EXPECT_EQ(SetAside(), 1u);
  }
  disk->is_worn = false;
  { ASSERT_TRUE(Open(env.get()).ok()); }
  EXPECT_FALSE(std::filesystem::exists(mark));
  EXPECT_EQ(SetAside(), 1u);
}

// Behind a key of all ones there is no key, and the walks that look for one began anew.
TEST_F(StoreRebuildTest, KeysOfAllOnesEndTheWalks) {
  const std::string ones(64, '\xff');
  { ASSERT_TRUE(Open().ok()); }
  Put(Family::kClockModels, ones.substr(0, 24), "x");
  Put(Family::kChunks, ones.substr(0, 28), "a chunk");
  Put(Family::kCaptures, keys::Capture(TestCaptureId(1)), "\x7f");  // so that it is rebuilt
  {
    const auto store = Open();
    ASSERT_TRUE(store.ok()) << store.status();
  }
  const auto database = Database::Open(path(), nullptr);
  ASSERT_TRUE(database.ok()) << database.status();
  EXPECT_TRUE(
      absl::IsNotFound((*database)->Get(Family::kClockModels, ones.substr(0, 24)).status()));
}

TEST_F(StoreRebuildTest, AStreamOfAllOnesThatBelongsToNothingIsDeleted) {
  const std::string ones(64, '\xff');
  { ASSERT_TRUE(Open().ok()); }
  Put(Family::kStreams, ones.substr(0, 20), EncodeStreamRecord({}));
  Put(Family::kClockModels, ones.substr(0, 24), "x");
  Put(Family::kChunkIndex, ones.substr(0, 36), "x");
  const auto report = CheckStore(path(), nullptr, {.examine = NoChunk});
  ASSERT_TRUE(report.ok()) << report.status();
  {
    const auto store = Open();
    ASSERT_TRUE(store.ok()) << store.status();
  }
  const auto database = Database::Open(path(), nullptr);
  ASSERT_TRUE(database.ok()) << database.status();
  for (const auto& [family, bytes] :
       {std::pair(Family::kStreams, 20), {Family::kClockModels, 24}, {Family::kChunkIndex, 36}}) {
    EXPECT_TRUE(absl::IsNotFound((*database)->Get(family, ones.substr(0, bytes)).status()));
  }
}

}  // namespace
}  // namespace neurontrace
