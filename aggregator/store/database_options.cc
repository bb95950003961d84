// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/database_options.h"

#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/table.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "lib/base/mutex.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {
namespace {

// Sends RocksDB's warnings and errors to the program's log instead of the file LOG in the store. If
// the disk is full, RocksDB 7.8 aborts the process over the second line that it cannot write there.
// Repetitions, such as those while a disk is full, are logged once. Any thread may log.
class RocksDbLog final : public rocksdb::Logger {
 public:
  RocksDbLog() : rocksdb::Logger(rocksdb::InfoLogLevel::WARN_LEVEL) {}

  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override;
  void LogHeader(const char*, va_list) override {}  // its options, at each start

 private:
  Mutex mutex_;
  std::string last_place_;  // where in RocksDB's code the last line came from
};

constexpr size_t kLineBytesMax = 1024;  // longer lines are cut
constexpr size_t kPlaceBytes = 48;      // covers severity, file and line

void RocksDbLog::Logv(const char* format, va_list arguments) {
  std::array<char, kLineBytesMax> line = {};
  std::vsnprintf(line.data(), line.size(), format, arguments);
  const std::string place(line.data(), strnlen(line.data(), kPlaceBytes));
  const MutexLock lock(mutex_);
  if (place == last_place_) return;
  last_place_ = place;
  spdlog::warn("rocksdb: {}", line.data());
}

constexpr size_t kMiB = size_t{1} << 20;
// Sizes are explained in docs/formats/store.md and were measured with store_bench.
constexpr size_t kChunkWriteBufferBytes = 64 * kMiB;
constexpr size_t kWriteBufferBytes = 8 * kMiB;
constexpr size_t kBlockCacheBytes = 32 * kMiB;
constexpr uint64_t kWalBytesMax = 256 * kMiB;
// Every chunk is in a blob file, however small. A blob file holds it whole, with its key and a
// checksum of its own, so that a store can be rebuilt from blob files alone.
constexpr uint64_t kBlobBytesMin = 0;
constexpr uint64_t kBlobFileBytes = 256 * kMiB;

// Turns RocksDB's own recovery off. After a full disk it would wait until there is room for all of
// its write buffers, 64 MiB and more, and refuse to be resumed meanwhile. Database::Write resumes
// it.
class ResumedByWriters final : public rocksdb::EventListener {
 public:
  // A compaction that finds no room blocks no write and is retried every second, so its error is
  // dropped. If RocksDB kept it, nothing would be compacted until the disk has the room that
  // RocksDB estimates. That estimate can wrap around to nearly 2^64, as a file that is met twice,
  // as happens at every start, is subtracted from it.
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* status) override {
    if (reason == rocksdb::BackgroundErrorReason::kCompaction && status->IsNoSpace()) {
      *status = rocksdb::Status::OK();
    }
  }
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }
};

// The number of files that RocksDB may keep open; the rest of the descriptors is for connections.
int FilesOpenMax() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<int>(limits::StoreFilesOpenMax(limit.rlim_cur));
}

// All families share one block cache, so its size bounds the memory for all of their blocks.
rocksdb::ColumnFamilyOptions FamilyOptions(Family family,
                                           const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions options;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.format_version = 5;
  // Heads of digests are read far more often than the items behind them, which are ten times as
  // large: a block ends before a value that does not fit, even if it is mostly empty.
  if (family == Family::kDigests) table.block_size_deviation = 90;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.compression = rocksdb::kNoCompression;
  options.write_buffer_size = kWriteBufferBytes;
  if (family == Family::kDigests) options.compression = rocksdb::kZSTD;  // times of even steps
  // The other families are small and their defaults do; chunks are nearly all of the bytes.
  if (family != Family::kChunks) return options;
  options.write_buffer_size = kChunkWriteBufferBytes;
  options.max_write_buffer_number = 3;
  options.enable_blob_files = true;
  options.min_blob_size = kBlobBytesMin;
  options.blob_file_size = kBlobFileBytes;
  options.blob_compression_type = rocksdb::kNoCompression;  // columns are compressed already
  options.enable_blob_garbage_collection = true;
  // A deleted capture shares blob files with others only at its edges. Such files are rewritten
  // once they are mostly garbage, whatever their age.
  options.blob_garbage_collection_age_cutoff = 1.0;
  options.blob_garbage_collection_force_threshold = 0.5;
  return options;
}

}  // namespace

std::string_view FamilyName(Family family) {
  static constexpr std::array<std::string_view, kFamilyCount> kNames = {
      "meta",        "captures",           "agents",       "workers",   "streams", "chunks",
      "chunk_index", "clock_observations", "clock_models", "artifacts", "digests"};
  return kNames[static_cast<size_t>(family)];
}

rocksdb::DBOptions DatabaseOptions(rocksdb::Env* env) {
  rocksdb::DBOptions options;
  if (env != nullptr) options.env = env;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.max_total_wal_size = kWalBytesMax;
  options.max_background_jobs = 2;
  options.info_log = std::make_shared<RocksDbLog>();
  options.listeners.push_back(std::make_shared<ResumedByWriters>());
  options.max_open_files = FilesOpenMax();
  options.avoid_flush_during_shutdown = true;  // the log has everything
  options.bytes_per_sync = kMiB;               // spreads the writes of large files over time
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  return options;
}

std::vector<rocksdb::ColumnFamilyDescriptor> FamilyDescriptors() {
  const auto cache = rocksdb::NewLRUCache(kBlockCacheBytes);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  // RocksDB requires its own default family. It holds nothing but the anchor of Database.
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions());
  for (size_t i = 0; i < kFamilyCount; ++i) {
    const Family family = static_cast<Family>(i);
    families.emplace_back(std::string(FamilyName(family)), FamilyOptions(family, cache));
  }
  return families;
}

}  // namespace neurontrace
