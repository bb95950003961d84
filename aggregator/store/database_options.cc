// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/database_options.h"

#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/table.h>
#include <sys/resource.h>

#include <memory>
#include <string>

#include "aggregator/store/rocksdb_log.h"
#include "trace/access_limits.h"

namespace neurontrace {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kChunkWriteBufferBytes = 64 * kMiB;
constexpr size_t kWriteBufferBytes = 8 * kMiB;
constexpr size_t kBlockCacheBytes = 32 * kMiB;
constexpr uint64_t kWalBytesMax = 256 * kMiB;
// Every chunk lies in a blob file, however small: there it stands whole, with its key and a
// checksum of its own, so that blob files alone are enough to make everything again.
constexpr uint64_t kBlobBytesMin = 0;
constexpr uint64_t kBlobFileBytes = 256 * kMiB;

// RocksDB would wait after a full disk until there is room for all of its write buffers, 64 MiB and
// more, and refuse to be resumed meanwhile. Database resumes it with the next write.
class ResumedByWriters final : public rocksdb::EventListener {
 public:
  // What only compaction misses stops no write, and is tried again each second. Were it remembered,
  // nothing would be compacted until there is room for what RocksDB reckons it needs: it takes a
  // file that it meets twice, as at every start, off that, which may then be 2^64 and less.
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

// What accepts connections leaves so many descriptors for files, also where they are few.
int FilesOpenMax() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<int>(limits::StoreFilesOpenMax(limit.rlim_cur));
}

rocksdb::ColumnFamilyOptions FamilyOptions(Family family,
                                           const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions options;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.format_version = 5;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.compression = rocksdb::kNoCompression;
  options.write_buffer_size = kWriteBufferBytes;
  if (family != Family::kChunks) return options;
  options.write_buffer_size = kChunkWriteBufferBytes;
  options.max_write_buffer_number = 3;
  options.enable_blob_files = true;
  options.min_blob_size = kBlobBytesMin;
  options.blob_file_size = kBlobFileBytes;
  options.blob_compression_type = rocksdb::kNoCompression;  // columns are compressed already
  options.enable_blob_garbage_collection = true;
  // A deleted capture shares files with others only at its edges; files that are mostly garbage are
  // rewritten, whatever their age.
  options.blob_garbage_collection_age_cutoff = 1.0;
  options.blob_garbage_collection_force_threshold = 0.5;
  return options;
}

}  // namespace

std::string_view FamilyName(Family family) {
  static constexpr std::array<std::string_view, kFamilyCount> kNames = {
      "meta",        "captures",           "agents",       "workers",  "streams", "chunks",
      "chunk_index", "clock_observations", "clock_models", "artifacts"};
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
  options.avoid_flush_during_shutdown = true;  // the log has all of it
  options.bytes_per_sync = kMiB;               // spreads the writing of large files
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  return options;
}

std::vector<rocksdb::ColumnFamilyDescriptor> FamilyDescriptors() {
  const auto cache = rocksdb::NewLRUCache(kBlockCacheBytes);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  // RocksDB insists on its own default family, which holds nothing but the anchor.
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions());
  for (size_t i = 0; i < kFamilyCount; ++i) {
    const Family family = static_cast<Family>(i);
    families.emplace_back(std::string(FamilyName(family)), FamilyOptions(family, cache));
  }
  return families;
}

}  // namespace neurontrace
