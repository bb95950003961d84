// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/store_files.h"

#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <filesystem>
#include <string>

#include "aggregator/store/database.h"
#include "aggregator/store/store_test_support.h"

namespace neurontrace {
namespace {

TEST(StoreFiles, AreThoseOfRocksDbAndOfTheRepair) {
  for (const char* const name :
       {"CURRENT", "IDENTITY", "LOCK", "LOG", "LOG.old.1700000000", "MANIFEST-000005",
        "OPTIONS-000007", "OPTIONS-000007.dbtmp", "000012.log", "000012.sst", "000012.blob",
        "000012.dbtmp", "12345678.log", "000012.log.damaged", "000012.log.whole", "DAMAGED_LOG",
        "REBUILT_IN_VAIN", "FOUND_DAMAGE"}) {
    EXPECT_TRUE(IsStoreFile(name)) << name;
  }
  for (const char* const name : {"audit.log",
                                 "audit.log.1",
                                 ".log",
                                 "12a.log",
                                 "-12.log",
                                 "000012.log.1",
                                 "000012.log~",
                                 "000012.LOG",
                                 "notes.sst",
                                 "x.blob",
                                 "MANIFEST-",
                                 "MANIFEST-x",
                                 "OPTIONS-1.txt",
                                 "audit.log.damaged",
                                 "1111111111111111111111.log",
                                 "LOG.txt",
                                 "CURRENT.bak",
                                 "artifacts",
                                 "lost+found",
                                 ""}) {
    EXPECT_FALSE(IsStoreFile(name)) << name;
    EXPECT_FALSE(IsWalFile(name)) << name;
  }
}

TEST(StoreFiles, AreInTheOrderOfTheirNumbers) {
  std::vector<std::string> names{"1000000.sst", "999999.sst", "000012.sst", "1000001.sst"};
  SortByNumber(names);
  const std::vector<std::string> sorted{"000012.sst", "999999.sst", "1000000.sst", "1000001.sst"};
  EXPECT_EQ(names, sorted);
}

TEST(StoreFiles, KnowEveryFileThatRocksDbMakes) {
  const TemporaryDirectory directory;
  {
    const auto database = Database::Open(directory.path(), nullptr).value();
    ASSERT_TRUE(database->Put(Family::kChunks, "key", std::string(1'000, 'v'), true).ok());
    ASSERT_TRUE(database->Flush().ok());
  }
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    EXPECT_TRUE(IsStoreFile(entry.path().filename().string())) << entry.path();
  }
}

TEST(StoreFiles, LogFilesAreNotForeign) {
  const TemporaryDirectory directory;
  const auto database = Database::Open(directory.path(), nullptr).value();
  const uint64_t before = database->WalBytes().value();
  ASSERT_TRUE(rocksdb::WriteStringToFile(rocksdb::Env::Default(), std::string(1 << 20, 'x'),
                                         directory.path() + "/audit.log")
                  .ok());
  EXPECT_EQ(database->WalBytes().value(), before);
}

// A link of RocksDB's name is refused; a socket or link of another name is none of its business.
TEST(StoreFiles, ForeignFilesHaveAnyName) {
  const TemporaryDirectory directory;
  std::filesystem::create_symlink("/nowhere", directory.path() + "/shipper.sock");
  EXPECT_TRUE(Database::Open(directory.path(), nullptr).ok());
  std::filesystem::create_symlink("/nowhere", directory.path() + "/000099.log");
  EXPECT_TRUE(absl::IsFailedPrecondition(Database::Open(directory.path(), nullptr).status()));
}

}  // namespace
}  // namespace neurontrace
