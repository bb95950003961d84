// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/database.h"

#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <charconv>

#include "base/status.h"

namespace neurontrace {
namespace {

// The format of everything in the store; raised when an older build could misread what this one
// writes. docs/formats/store.md has its history.
constexpr uint64_t kFormatVersion = 1;
constexpr std::string_view kFormatVersionKey = "format_version";

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kChunkWriteBufferBytes = 64 * kMiB;
constexpr size_t kWriteBufferBytes = 8 * kMiB;
constexpr size_t kBlockCacheBytes = 32 * kMiB;
constexpr uint64_t kWalBytesMax = 256 * kMiB;
// Smaller values stay beside their keys: a file of their own would cost more than it saves.
constexpr uint64_t kBlobBytesMin = 1024;
constexpr uint64_t kBlobFileBytes = 256 * kMiB;

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

rocksdb::DBOptions DatabaseOptions(rocksdb::Env* env) {
  rocksdb::DBOptions options;
  if (env != nullptr) options.env = env;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.max_total_wal_size = kWalBytesMax;
  options.max_background_jobs = 2;
  options.keep_log_file_num = 4;
  options.max_open_files = 512;
  options.bytes_per_sync = kMiB;  // spreads the writing of large files
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  return options;
}

// RocksDB opens a database only with all of its families. One that a newer version has added must
// not hide the clear message about the format.
void AddForeignFamilies(const std::string& path, rocksdb::Env* env,
                        std::vector<rocksdb::ColumnFamilyDescriptor>& families) {
  std::vector<std::string> names;
  if (!rocksdb::DB::ListColumnFamilies(DatabaseOptions(env), path, &names).ok()) return;  // is new
  for (const std::string& name : names) {
    const bool is_known = std::any_of(families.begin(), families.end(),
                                      [&](const auto& family) { return family.name == name; });
    if (!is_known) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  }
}

}  // namespace

std::string_view FamilyName(Family family) {
  static constexpr std::array<std::string_view, kFamilyCount> kNames = {
      "meta",        "captures",           "agents",       "workers",  "streams", "chunks",
      "chunk_index", "clock_observations", "clock_models", "artifacts"};
  return kNames[static_cast<size_t>(family)];
}

absl::Status FromRocksDb(const rocksdb::Status& status, std::string_view doing) {
  if (status.ok()) return absl::OkStatus();
  const std::string words = status.ToString();
  if (status.IsNotFound()) return NotFound("{}: not there", doing);
  if (status.IsCorruption()) return DataLoss("{}: the store is damaged: {}", doing, words);
  if (status.IsNoSpace()) return ResourceExhausted("{}: the disk is full: {}", doing, words);
  if (status.IsBusy() || status.IsTryAgain()) return Unavailable("{}: {}", doing, words);
  if (words.find("lock") != std::string::npos && words.find("LOCK") != std::string::npos) {
    return FailedPrecondition("{}: another process has the store open: {}", doing, words);
  }
  if (status.IsIOError()) return Unavailable("{}: {}", doing, words);
  return Internal("{}: {}", doing, words);
}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& path,
                                                         rocksdb::Env* env) {
  const auto cache = rocksdb::NewLRUCache(kBlockCacheBytes);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  // RocksDB insists on its own default family, which stays empty.
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions());
  for (size_t i = 0; i < kFamilyCount; ++i) {
    const Family family = static_cast<Family>(i);
    families.emplace_back(std::string(FamilyName(family)), FamilyOptions(family, cache));
  }
  AddForeignFamilies(path, env, families);
  std::unique_ptr<Database> database(new Database);
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  RETURN_IF_ERROR(
      FromRocksDb(rocksdb::DB::Open(DatabaseOptions(env), path, families, &handles, &db),
                  fmt::format("opening the store {}", path)));
  database->db_.reset(db);
  db->DestroyColumnFamilyHandle(handles.front());
  database->handles_.assign(handles.begin() + 1, handles.end());
  if (absl::Status status = database->CheckFormat(); !status.ok()) {
    return absl::Status(status.code(),
                        fmt::format("store {}: {}", path, std::string(status.message())));
  }
  return database;
}

Database::~Database() {
  for (rocksdb::ColumnFamilyHandle* handle : handles_) db_->DestroyColumnFamilyHandle(handle);
}

absl::Status Database::CheckFormat() {
  const auto text = Get(Family::kMeta, kFormatVersionKey);
  if (absl::IsNotFound(text.status())) {
    return Put(Family::kMeta, kFormatVersionKey, std::to_string(kFormatVersion), true);
  }
  if (!text.ok()) return text.status();
  uint64_t version = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), version);
  if (error != std::errc() || end != text->data() + text->size() || version == 0) {
    return DataLoss("its format version is '{}', which is no number", *text);
  }
  if (version > kFormatVersion) {
    return FailedPrecondition(
        "written in format {} by a newer neurontrace; this one knows formats up to {}: install "
        "the newer version, or name another directory",
        version, kFormatVersion);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Database::Get(Family of, std::string_view key) const {
  std::string value;
  const rocksdb::Status status = db_->Get({}, family(of), ToSlice(key), &value);
  if (!status.ok()) return FromRocksDb(status, fmt::format("reading {}", FamilyName(of)));
  return value;
}

absl::Status Database::Put(Family of, std::string_view key, std::string_view value, bool sync) {
  rocksdb::WriteOptions options;
  options.sync = sync;
  return FromRocksDb(db_->Put(options, family(of), ToSlice(key), ToSlice(value)),
                     fmt::format("writing {}", FamilyName(of)));
}

absl::Status Database::DeleteRange(Family of, std::string_view begin, std::string_view end) {
  const std::string doing = fmt::format("deleting from {}", FamilyName(of));
  rocksdb::WriteOptions options;
  options.sync = true;
  const rocksdb::Slice from = ToSlice(begin);
  const rocksdb::Slice to = ToSlice(end);
  RETURN_IF_ERROR(FromRocksDb(db_->DeleteRange(options, family(of), from, to), doing));
  // Only the compaction makes files go; it reads keys alone, as values lie in blob files.
  rocksdb::CompactRangeOptions compact;
  compact.exclusive_manual_compaction = false;
  compact.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  return FromRocksDb(db_->CompactRange(compact, family(of), &from, &to), doing);
}

uint64_t Database::Bytes() const {
  uint64_t bytes = 0;
  for (rocksdb::ColumnFamilyHandle* handle : handles_) {
    uint64_t value = 0;
    for (const auto& property :
         {rocksdb::DB::Properties::kTotalSstFilesSize, rocksdb::DB::Properties::kTotalBlobFileSize,
          rocksdb::DB::Properties::kCurSizeAllMemTables}) {
      if (db_->GetIntProperty(handle, property, &value)) bytes += value;
    }
  }
  return bytes;
}

}  // namespace neurontrace
