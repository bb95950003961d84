// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/table_verify.h"

#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "aggregator/store/clock_evidence_rows.h"
#include "aggregator/store/store_test_support.h"

namespace neurontrace {
namespace {

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

}  // namespace
}  // namespace neurontrace
