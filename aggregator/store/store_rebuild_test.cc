// SPDX-License-Identifier: Apache-2.0
// What a store holds that it cannot have written, as a damaged disk or a backup of who knows whom
// may have it: it opens all the same, after one rebuild at most.
// aggregator/storage/store_recovery_test.cc has what damage of real files does to chunks.
#include "aggregator/store/store_rebuild.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "aggregator/store/clock_evidence_rows.h"
#include "aggregator/store/keys.h"
#include "aggregator/store/store_salvage.h"
#include "aggregator/store/store_test_support.h"
#include "lib/trace/clock_evidence_codec.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

absl::StatusOr<ReceivedChunk> NoChunk(std::string_view, std::string_view, uint32_t) {
  return absl::InternalError("no chunk");
}

// The machine's disk; no table in the store's own directory can be read while it is worn.
class FailingDisk final : public rocksdb::FileSystemWrapper {
 public:
  FailingDisk() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "WornDisk"; }
  bool is_failing = true;

  rocksdb::IOStatus NewRandomAccessFile(const std::string& name,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* context) override {
    const bool is_own = name.find("/rebuilding/") == std::string::npos;
    if (is_failing && is_own && name.ends_with(".sst")) return rocksdb::IOStatus::Corruption(name);
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
    ASSERT_TRUE((*store)->clocks().ContinueEpoch("boot-1", 5, 6).ok());
    ASSERT_EQ((*store)->clocks().ContinueEpoch("boot-2", 5, 6)->number, 2u);
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
    const auto epoch = (*store)->clocks().ContinueEpoch("boot-2", 5, 6);
    ASSERT_TRUE(epoch.ok()) << epoch.status();
    EXPECT_EQ(epoch->number, 3u);
  }
}

// A place in a table of clock evidence cannot be read. What precedes and follows it is kept, and
// captures of that time whose clocks need it remember that it is lost; others do not.
TEST_F(StoreRebuildTest, CapturesRememberThatEvidenceOfTheirClocksIsLost) {
  const WorkerIdentity worker = TestStream(0).worker;
  const HostBoot host{worker.instance_id, worker.boot_id};
  constexpr uint64_t kMinuteNs = 60'000'000'000;
  {
    const auto store = Store::Open(path(), {}).value();
    for (const uint8_t number : {1, 2, 3}) {  // 1 early, 2 and 3 where the damage is
      CaptureRecord capture = TestCapture(number);
      capture.state = CaptureState::kComplete;
      capture.started_realtime_ns = number == 1 ? kMinuteNs : 300 * kMinuteNs;
      capture.ended_realtime_ns = capture.started_realtime_ns + 500 * kMinuteNs * (number > 1);
      ASSERT_TRUE(store->captures().Put(capture, true).ok());
      const ReceivedChunk chunk = TestChunk(number, TestStream(0), 0);
      ASSERT_TRUE(store->chunks().PutBatch({&chunk, 1}).ok());
    }
    ASSERT_TRUE(store->clock_models().Put(TestCaptureId(3), {1, "final", {}}).ok());
    std::mt19937_64 random;
    uint64_t raw_ns = 0;
    std::vector<ClockEvidenceBatch> batches;
    for (uint64_t i = 1; i <= 1'000; ++i) {
      ClockEvidence evidence;  // that does not compress to nothing
      for (int events = 0; events < 40; ++events) {
        raw_ns += random() >> 24;
        evidence.events.push_back({ClockEventKind::kClockSource, raw_ns, raw_ns + 1});
      }
      batches.push_back({host, i * kMinuteNs, EncodeClockEvidence(evidence)});
    }
    ASSERT_TRUE(store->clocks().Put(batches).ok());
  }
  Put(Family::kMeta, "x", "y");  // and flushes
  std::filesystem::path largest;
  for (const auto& entry : std::filesystem::directory_iterator(path())) {
    if (entry.path().extension() != ".sst") continue;
    if (largest.empty() || entry.file_size() > std::filesystem::file_size(largest)) {
      largest = entry.path();
    }
  }
  std::fstream file(largest, std::ios::in | std::ios::out | std::ios::binary);
  const auto middle = static_cast<std::streamoff>(std::filesystem::file_size(largest) / 2);
  file.seekg(middle);
  const char byte = static_cast<char>(file.get() ^ 4);
  file.seekp(middle);
  file.put(byte);
  file.close();
  const auto store = Store::Open(
      path(), {.examine = NoChunk,
               .are_clocks_final = [](std::string_view header) { return header == "final"; }});
  ASSERT_TRUE(store.ok()) << store.status();
  const uint64_t left = (*store)->clocks().ExtentOf(host, {})->batches;
  EXPECT_GT(left, 800u) << "all but one block of the table";
  EXPECT_LT(left, 1'000u);
  const auto remarks = [&](uint8_t number) {
    return (*store)->OpenCapture(TestCaptureId(number)).Streams()->at(0).remarks;
  };
  EXPECT_THAT(remarks(1), IsEmpty());
  EXPECT_THAT(remarks(2), ElementsAre(Field(&Remark::kind, RemarkKind::kStoreFault)));
  EXPECT_THAT(remarks(3), IsEmpty());
}

// The bytes of a table that cannot be opened still name its family.
TEST_F(StoreRebuildTest, ATableOfOtherThingsThatCannotBeReadTakesNoEvidence) {
  {
    const auto store = Store::Open(path(), {}).value();
    ASSERT_TRUE(store->captures().Put(TestCapture(1), true).ok());
    const ReceivedChunk chunk = TestChunk(1, TestStream(0), 0);
    ASSERT_TRUE(store->chunks().PutBatch({&chunk, 1}).ok());
    ASSERT_TRUE(store->inventory().PutAgent({.info = {.agent_id = "agent-a"}}).ok());
  }
  Put(Family::kMeta, "x", "y");  // and flushes
  std::string agents;
  {
    const auto database = Database::Open(path(), nullptr);
    ASSERT_TRUE(database.ok()) << database.status();
    std::vector<rocksdb::LiveFileMetaData> files;
    (*database)->db().GetLiveFilesMetaData(&files);
    for (const auto& file : files) {
      if (file.column_family_name == FamilyName(Family::kAgents)) agents = path() + file.name;
    }
  }
  ASSERT_NE(agents, "");
  std::fstream file(agents, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(agents)) - 60);
  file << std::string(60, 'x');  // the footer
  file.close();
  const auto store = Open();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_THAT((*store)->notes(), Contains(HasSubstr("rebuilt")));
  const auto streams = (*store)->OpenCapture(TestCaptureId(1)).Streams();
  ASSERT_THAT(*streams, SizeIs(1));
  EXPECT_THAT(streams->at(0).remarks, IsEmpty());
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

TEST_F(StoreRebuildTest, DoesNotRepeatFutileRebuild) {
  { ASSERT_TRUE(Open().ok()); }
  Put(Family::kMeta, "key", "value");
  const auto disk = std::make_shared<FailingDisk>();
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(disk);
  const std::string mark = path() + "/REBUILT_IN_VAIN";
  for (int start = 0; start < 3; ++start) {
    const auto store = Open(env.get());
    EXPECT_TRUE(absl::IsDataLoss(store.status())) << store.status();
    EXPECT_THAT(std::string(store.status().message()), HasSubstr(mark));
    EXPECT_EQ(SetAside(), 1u);
  }
  disk->is_failing = false;
  { ASSERT_TRUE(Open(env.get()).ok()); }
  EXPECT_FALSE(std::filesystem::exists(mark));
  EXPECT_EQ(SetAside(), 1u);
}

// Behind a key of all ones there is no key, and the walks that look for one restarted.
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

// The machine's file system, which does something just before it opens the next table.
class BusyDisk final : public rocksdb::FileSystemWrapper {
 public:
  BusyDisk() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "BusyDisk"; }
  void BeforeNextTable(std::function<void()> action) { action_ = std::move(action); }
  bool done() const { return action_ == nullptr; }

  rocksdb::IOStatus NewRandomAccessFile(const std::string& name,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* context) override {
    if (name.ends_with(".sst") && action_ != nullptr) std::exchange(action_, nullptr)();
    return FileSystemWrapper::NewRandomAccessFile(name, options, file, context);
  }

 private:
  std::function<void()> action_;
};

TEST(TableVerifyTest, ATableThatACompactionReplacesMeanwhileIsNotDamage) {
  TemporaryDirectory directory;
  const auto disk = std::make_shared<BusyDisk>();
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(disk);
  const auto database = Database::Open(directory.path(), env.get());
  ASSERT_TRUE(database.ok()) << database.status();
  Database& store = **database;
  rocksdb::ColumnFamilyHandle* const meta = store.family(Family::kMeta);
  for (const std::string key : {"a", "b"}) {
    ASSERT_TRUE(store.Put(Family::kMeta, key, "value", true).ok());
    ASSERT_TRUE(store.db().Flush({}, meta).ok());
  }
  disk->BeforeNextTable([&] {
    rocksdb::CompactRangeOptions options;
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    EXPECT_TRUE(store.db().CompactRange(options, meta, nullptr, nullptr).ok());
  });
  const absl::Status status = VerifyTables(store);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(disk->done());
}

TEST(TableVerifyTest, RowsOfClocksThatCannotBeReadAreDamage) {
  const std::string evidence_key = EvidenceKey({{"i-1", "boot"}, 100, "evidence"});
  const std::tuple<Family, std::string, std::string> rows[] = {
      {Family::kMeta, EpochKey(1), "nonsense"},
      {Family::kClockModels, "abcd", "v"},
      {Family::kClockObservations, evidence_key.substr(1), "evidence"}};
  for (const auto& [family, key, value] : rows) {
    SCOPED_TRACE(FamilyName(family));
    TemporaryDirectory directory;
    const auto database = Database::Open(directory.path(), nullptr);
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE((*database)->Put(Family::kClockObservations, evidence_key, "evidence", true).ok());
    ASSERT_TRUE((*database)->Put(Family::kMeta, EpochKey(0), EncodeEpoch({}), true).ok());
    EXPECT_TRUE(VerifyTables(**database).ok());
    ASSERT_TRUE((*database)->Put(family, key, value, true).ok());
    EXPECT_TRUE(absl::IsDataLoss(VerifyTables(**database)));
  }
}

// Which of two versions of a record a rebuild keeps, whichever it meets first.

TEST(SalvagedRecords, OneThatHasBegunIsNewerThanOneThatArms) {
  CaptureRecord arming = TestCapture(1);
  arming.state = CaptureState::kArming;
  arming.workers.resize(3);  // two of an agent that was away, and came
  CaptureRecord recording = TestCapture(1);
  recording.armed_realtime_ns = 7;
  recording.begin = CaptureBegin{.reference_ns = 8};
  recording.workers.resize(1);
  CaptureRecord chosen = recording;
  chosen.begin->first_execution = 9;
  chosen.workers.clear();
  const CaptureRecord* const versions[] = {&arming, &recording, &chosen};
  for (const bool backwards : {false, true}) {
    SalvagedRecords records;
    for (size_t i = 0; i < 3; ++i) records.Take(*versions[backwards ? 2 - i : i]);
    EXPECT_EQ(records.captures.at(TestCaptureId(1)), chosen);
  }
}

}  // namespace
}  // namespace neurontrace
