// SPDX-License-Identifier: Apache-2.0
// What was found damaged while the database took no writes is in the records after the next
// start, each once.
#include "aggregator/store/found_damage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "aggregator/store/full_disk.h"
#include "aggregator/store/store.h"
#include "aggregator/store/store_test_support.h"
#include "lib/trace/store_limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FoundDamageTest : public ::testing::Test {
 protected:
  FoundDamageTest() : disk_(std::make_shared<FullDisk>()), env_(rocksdb::NewCompositeEnv(disk_)) {}

  std::unique_ptr<Store> OpenStore() {
    auto store = Store::Open(directory_.path(), {.env = env_.get()});
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  static void Fill(Store& store) {
    ASSERT_TRUE(store.captures().Put(TestCapture(1), true).ok());
    for (uint64_t sequence = 0; sequence < 5; ++sequence) {
      const ReceivedChunk chunk = TestChunk(1, TestStream(0), sequence);
      ASSERT_TRUE(store.chunks().PutBatch({&chunk, 1}).ok());
    }
  }
  static std::vector<Remark> RemarksOf(const Store& store) {
    const auto streams = store.OpenCapture(TestCaptureId(1)).Streams();
    EXPECT_TRUE(streams.ok()) << streams.status();
    return streams->at(0).remarks;
  }
  static FoundDamage Chunk(uint64_t sequence, const std::string& what) {
    return {.capture = TestCaptureId(1), .stream = 0, .sequence = sequence, .what = what};
  }

  const TemporaryDirectory directory_;
  const std::shared_ptr<FullDisk> disk_;
  const std::unique_ptr<rocksdb::Env> env_;
};

TEST_F(FoundDamageTest, IsReadAsItWasWritten) {
  const FoundDamage found[] = {
      Chunk(7, "its checksum is wrong"),
      {.capture = TestCaptureId(2), .stream = 3, .kind = RemarkKind::kStoreFault, .what = "sums"}};
  ASSERT_TRUE(AppendFoundDamage(directory_.path(), *env_, {&found[0], 1}).ok());
  ASSERT_TRUE(AppendFoundDamage(directory_.path(), *env_, {&found[1], 1}).ok());
  std::ofstream(directory_.path() + "/FOUND_DAMAGE", std::ios::app)
      << "nonsense\n\n1 2 3\n"
      << TestCaptureId(1).ToString() << " 1 2 200 of a later version\n";
  EXPECT_THAT(ReadFoundDamage(directory_.path(), *env_).value(), ElementsAre(found[0], found[1]));
  ASSERT_TRUE(RemoveFoundDamage(directory_.path(), *env_).ok());
  EXPECT_THAT(ReadFoundDamage(directory_.path(), *env_).value(), IsEmpty());
}

TEST_F(FoundDamageTest, IsNotWrittenBeyondItsLimitNorThroughALink) {
  const std::vector<FoundDamage> many(10'000, Chunk(7, std::string(10'000, 'x')));
  ASSERT_TRUE(AppendFoundDamage(directory_.path(), *env_, many).ok());
  const std::string file = directory_.path() + "/FOUND_DAMAGE";
  EXPECT_LT(std::filesystem::file_size(file), limits::kFoundDamageBytesMax + 1'000);
  std::filesystem::remove(file);
  std::filesystem::create_symlink(directory_.path() + "/elsewhere", file);
  EXPECT_FALSE(AppendFoundDamage(directory_.path(), *env_, many).ok());
  EXPECT_FALSE(std::filesystem::exists(directory_.path() + "/elsewhere"));
}

TEST_F(FoundDamageTest, RecordsDamageOnce) {
  auto store = OpenStore();
  Fill(*store);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(store->chunks().RecordFound(Chunk(1, "chunk 1: no columns"), 1).ok());
    ASSERT_TRUE(store->chunks().RecordFound(Chunk(2, "chunk 2: no columns"), 2).ok());
  }
  const Remark expected{.kind = RemarkKind::kChunkUnreadable,
                        .count = 2,
                        .details = {"chunk 1: no columns", "chunk 2: no columns"}};
  EXPECT_THAT(RemarksOf(*store), ElementsAre(expected));
  store = nullptr;
  store = OpenStore();
  EXPECT_THAT(RemarksOf(*store), ElementsAre(expected));
  // Nothing is recorded for streams and captures that do not exist.
  FoundDamage other = Chunk(1, "x");
  other.stream = 9;
  EXPECT_TRUE(store->chunks().RecordFound(other, 1).ok());
  other.capture = TestCaptureId(9);
  EXPECT_TRUE(store->chunks().RecordFound(other, 1).ok());
  EXPECT_FALSE(std::filesystem::exists(directory_.path() + "/FOUND_DAMAGE"));
}

// As after a compaction of RocksDB's that met the damage first.
TEST_F(FoundDamageTest, IsKnownAtOnceAndWrittenDownByTheNextStart) {
  auto store = OpenStore();
  Fill(*store);
  disk_->SetFails(true);
  ASSERT_TRUE(store->chunks().RecordFound(Chunk(1, "chunk 1: no columns"), 1).ok());
  const Remark expected{
      .kind = RemarkKind::kChunkUnreadable, .count = 1, .details = {"chunk 1: no columns"}};
  EXPECT_THAT(RemarksOf(*store), ElementsAre(expected));
  EXPECT_TRUE(std::filesystem::exists(directory_.path() + "/FOUND_DAMAGE"));
  store = nullptr;
  disk_->SetFails(false);
  store = OpenStore();
  EXPECT_THAT(store->notes(), ElementsAre(HasSubstr("1 faults found earlier")));
  EXPECT_THAT(RemarksOf(*store), ElementsAre(expected));
  EXPECT_FALSE(std::filesystem::exists(directory_.path() + "/FOUND_DAMAGE"));
}

}  // namespace
}  // namespace neurontrace
