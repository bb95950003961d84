// SPDX-License-Identifier: Apache-2.0
// Logs as RocksDB writes them, damaged anywhere and made by somebody hostile: what is whole is
// found, and the report about the rest has a limit.
#include "aggregator/store/wal_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <memory>
#include <string>
#include <vector>

#include "aggregator/store/rocksdb_bytes.h"
#include "lib/base/fuzz_seed.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr char kDirectory[] = "/db";
constexpr size_t kBlockBytes = 32'768;
constexpr size_t kHeaderBytes = 7;
constexpr char kFull = 1;
constexpr char kFirst = 2;
constexpr char kMiddle = 3;
constexpr char kLast = 4;

std::string Fragment(char type, const std::string& content) {
  std::string bytes(kHeaderBytes, '\0');
  bytes[4] = static_cast<char>(content.size() & 0xff);
  bytes[5] = static_cast<char>(content.size() >> 8);
  bytes[6] = type;
  bytes += content;
  PutCrc(std::string_view(bytes).substr(6), bytes.data());
  return bytes;
}

class WalScan : public ::testing::Test {
 protected:
  WalScan() { EXPECT_TRUE(env_->CreateDirIfMissing(kDirectory).ok()); }

  std::vector<std::string> Scan(size_t record_bytes_max = limits::kWalRecordBytesMax) {
    std::vector<std::string> writes;
    const auto damage = ScanWal(
        kDirectory, *env_,
        [&](std::string_view batch) {
          writes.emplace_back(batch);
          return absl::OkStatus();
        },
        record_bytes_max);
    EXPECT_TRUE(damage.ok()) << damage.status();
    damage_ = damage.value_or(std::vector<WalDamage>());
    return writes;
  }
  std::vector<std::string> Scan(const std::string& log) {
    EXPECT_TRUE(rocksdb::WriteStringToFile(env_.get(), log, "/db/000001.log").ok());
    return Scan();
  }

  const std::unique_ptr<rocksdb::Env> env_{rocksdb::NewMemEnv(rocksdb::Env::Default())};
  std::vector<WalDamage> damage_;
};

TEST_F(WalScan, ReadsWhatRocksDbWrites) {
  rocksdb::Options options;
  options.env = env_.get();
  options.create_if_missing = true;
  options.avoid_flush_during_shutdown = true;
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, kDirectory, &opened).ok());
  std::unique_ptr<rocksdb::DB> database(opened);
  const std::string sizes[] = {"a", std::string(kBlockBytes - 40, 'b'), std::string(100'000, 'c')};
  for (const std::string& value : sizes) ASSERT_TRUE(database->Put({}, "key", value).ok());
  database.reset();
  const auto writes = Scan();
  ASSERT_THAT(writes, SizeIs(3));
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(writes[i].ends_with(sizes[i]));
  EXPECT_THAT(damage_, SizeIs(0));
}

TEST_F(WalScan, ADamagedByteCostsTheWriteItHit) {
  const std::string one = Fragment(kFull, "one");
  const std::string two = Fragment(kFirst, "tw") + Fragment(kLast, "o");
  const std::string log = one + two + Fragment(kFull, "three");
  for (size_t at = one.size(); at < one.size() + two.size(); ++at) {
    std::string bad = log;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    EXPECT_THAT(Scan(bad), ElementsAre("one", "three")) << at;
    ASSERT_FALSE(damage_.empty());
    EXPECT_TRUE(damage_[0].records_follow);
    ASSERT_TRUE(RewriteDamagedLogs(kDirectory, *env_).ok());
    EXPECT_THAT(Scan(), ElementsAre("one", "three"));
    EXPECT_TRUE(damage_.empty());
  }
  EXPECT_THAT(Scan(log.substr(0, log.size() - 1)), ElementsAre("one", "two"));
  ASSERT_THAT(damage_, SizeIs(1));
  EXPECT_FALSE(damage_[0].records_follow);
}

// RocksDB takes a header of zeros for the end of what was written and drops the block without a
// word.
TEST_F(WalScan, AHeaderOfZerosInTheMiddleOfABlockIsDamage) {
  const std::string one = Fragment(kFull, "one");
  const std::string two = Fragment(kFull, "two");
  std::string log = one + two + Fragment(kFull, "three");
  log.replace(one.size() + 4, 3, std::string(3, '\0'));  // length and type
  EXPECT_THAT(Scan(log), ElementsAre("one", "three"));
  ASSERT_THAT(damage_, SizeIs(1));
  EXPECT_EQ(damage_[0].offset, one.size());
  EXPECT_TRUE(damage_[0].records_follow);
  log.replace(one.size(), two.size(), std::string(two.size(), '\0'));  // all of the write
  EXPECT_THAT(Scan(log), ElementsAre("one", "three"));
  EXPECT_THAT(damage_, SizeIs(1));
  ASSERT_TRUE(RewriteDamagedLogs(kDirectory, *env_).ok());
  EXPECT_THAT(Scan(), ElementsAre("one", "three"));
  EXPECT_TRUE(damage_.empty());
}

TEST_F(WalScan, UnwrittenBlockTailIsNoDamage) {
  std::string log = Fragment(kFull, "one");
  log.resize(kBlockBytes);
  log += Fragment(kFull, "two");
  log.resize(kBlockBytes + 1'000);
  EXPECT_THAT(Scan(log), ElementsAre("one", "two"));
  EXPECT_THAT(damage_, SizeIs(0));
}

// Each took a line, and each write behind them went over all of them.
TEST_F(WalScan, ReportsFirstPlacesAndCountsOthers) {
  const std::string place = "\xff\xff\xff\xff\xff" + Fragment(kFull, "");
  std::string block;
  while (block.size() + place.size() <= kBlockBytes) block += place;
  const size_t places = 40 * (block.size() / place.size());
  block.resize(kBlockBytes);
  std::string log;
  for (int i = 0; i < 40; ++i) log += block;
  EXPECT_THAT(Scan(log), SizeIs(places));
  ASSERT_THAT(damage_, SizeIs(limits::kWalDamageNamedMax));
  EXPECT_EQ(damage_.back().further, places - limits::kWalDamageNamedMax);
  EXPECT_TRUE(damage_.back().records_follow);
  EXPECT_TRUE(damage_.back().ToString().ends_with(" further places"));
  // A later log has its own.
  const uint64_t further = damage_.back().further;
  ASSERT_TRUE(rocksdb::WriteStringToFile(env_.get(), place + place, "/db/000002.log").ok());
  EXPECT_THAT(Scan(), SizeIs(places + 2));
  ASSERT_THAT(damage_, SizeIs(limits::kWalDamageNamedMax + 1));
  EXPECT_EQ(damage_[limits::kWalDamageNamedMax - 1].further, further);
  EXPECT_EQ(damage_.back().file, "000002.log");
  EXPECT_EQ(damage_.back().further, 1u);
  EXPECT_TRUE(damage_.back().records_follow);
}

TEST_F(WalScan, AWriteThatDoesNotEndIsDamage) {
  const std::string piece(1'000, 'x');
  std::string log = Fragment(kFirst, piece);
  for (int i = 0; i < 9; ++i) log += Fragment(kMiddle, piece);
  log += Fragment(kLast, "") + Fragment(kFull, "behind it");
  EXPECT_THAT(Scan(log), SizeIs(2));
  EXPECT_THAT(Scan(size_t{9'999}), ElementsAre("behind it"));
  ASSERT_THAT(damage_, SizeIs(1));
  EXPECT_EQ(damage_[0].offset, 0u);
  EXPECT_TRUE(damage_[0].records_follow);
}

// Not a test: see lib/base/fuzz_seed.h. The first byte is the fuzzer's own.
TEST_F(WalScan, WritesFuzzCorpusOnRequest) {
  NT_SKIP_UNLESS_FUZZ_SEEDS_ARE_WANTED();
  const std::string log = Fragment(kFull, "one") + Fragment(kFirst, "tw") + Fragment(kLast, "o");
  WriteFuzzSeed("database_files_fuzzer", "log", '\x02' + log + Fragment(kFull, ""));
  WriteFuzzSeed("database_files_fuzzer", "log_at_block_end",
                '\x06' + log + Fragment(kFirst, std::string(23, 'x')) + Fragment(kLast, "y"));
  std::string zeroed = log;
  zeroed.replace(0, kHeaderBytes, std::string(kHeaderBytes, '\0'));
  WriteFuzzSeed("database_files_fuzzer", "log_zeroed_header", std::string(1, '\0') + zeroed);
  // As ScanBlobFile's source has it.
  std::string blob(30, '\0');
  blob.replace(0, 5, std::string("\x37\x8f\x24\x00\x01", 5));
  std::string record(32, '\0');
  record[0] = 28;  // bytes of a key of family chunks
  record[8] = 5;
  record += std::string(28, 'k') + "value";
  PutCrc(std::string_view(record).substr(0, 24), record.data() + 24);
  PutCrc(std::string_view(record).substr(32), record.data() + 28);
  WriteFuzzSeed("database_files_fuzzer", "blob", '\x03' + blob + record + "damage" + record);
  WriteFuzzSeed("database_files_fuzzer", "blob_with_ends",
                '\x0b' + blob + record + std::string(32, '\0'));
}

}  // namespace
}  // namespace neurontrace
