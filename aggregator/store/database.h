// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/iterator.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/store/database_options.h"
#include "aggregator/store/store_errors.h"
#include "aggregator/store/wal_scan.h"

namespace neurontrace {

// Internal figures that RocksDB reports; docs/operator/metrics.md describes them. A plain value.
struct DatabaseState {
  uint64_t memtable_bytes = 0;
  uint64_t blob_garbage_bytes = 0;
  uint64_t compaction_pending_bytes = 0;
  uint64_t background_errors = 0;  // since the database was opened
  bool write_stalled = false;      // writers are stopped or slowed down
};

// Convert without copying: the result is valid as long as its argument's bytes.
inline rocksdb::Slice ToSlice(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view ToView(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

// The open database: RocksDB with this program's families and options. Knows nothing about the
// contents but the format version. Included only by .cc files of this folder and headers that they
// alone include, so that RocksDB stays inside. Any thread may call; a write waits for the disk.
class Database {
 public:
  // Opens the database and creates what does not exist yet. A log that ends in a torn write opens
  // normally, since nothing in that write was acknowledged. A log with any other damage is replaced
  // by one of its whole records, and wal_damage() describes the damage.
  //
  // Fails with FAILED_PRECONDITION if another process has the database open or a newer build has
  // written it, and with DATA_LOSS if it is damaged otherwise. Other errors are those of
  // FromRocksDb. `env` is not owned and must outlive this; nullptr is the machine's.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path, rocksdb::Env* env);
  // Opens the database without changing or creating any file but the lock. Fails with NOT_FOUND if
  // there is no store, and as Open does. Other processes cannot open it meanwhile, unless the file
  // system is mounted read-only or the store, being a copy, has no lock file.
  static absl::StatusOr<std::unique_ptr<Database>> OpenToRead(const std::string& path,
                                                              rocksdb::Env* env);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Returns RocksDB itself, for iterators, snapshots and properties. Writes go through Write.
  rocksdb::DB& db() const { return *db_; }
  rocksdb::ColumnFamilyHandle* family(Family family) const {
    return handles_[static_cast<size_t>(family)];
  }

  // Fails with NOT_FOUND if there is no such key.
  absl::StatusOr<std::string> Get(Family family, std::string_view key) const;
  // Writes one value, as Write does.
  absl::Status Put(Family family, std::string_view key, std::string_view value, bool sync);
  // Applies a batch atomically; with `sync` it is on the disk on return. `doing` begins the message
  // of an error. RocksDB stops after a failed write, and the next call resumes it first, so that a
  // disk that was full is used as soon as it has room. After some errors RocksDB cannot be resumed;
  // no write succeeds any more, and must_reopen() returns true.
  absl::Status Write(rocksdb::WriteBatch& batch, bool sync, std::string_view doing);

  // Deletes [begin, end) of a family, synced, and compacts the range, which can take seconds.
  absl::Status DeleteRange(Family family, std::string_view begin, std::string_view end);

  // Returns true once only closing and opening the database again can make it accept writes.
  // RocksDB could not create a log file for lack of space, inodes or quota, or did not resume
  // within the patience. Reads still work.
  bool must_reopen() const { return must_reopen_; }
  // Creates, writes, syncs and deletes a small file in the directory, as opening would. Fails while
  // opening would fail for lack of space, inodes or quota.
  absl::Status ProbeDisk() const;

  // For tests: how long Write waits for RocksDB to resume; 30 s otherwise.
  void SetResumePatience(std::chrono::nanoseconds patience) { resume_patience_ = patience; }

  // Moves everything written so far from the logs into table and blob files.
  absl::Status Flush();
  // Flushes after deletions, so that old logs go, and deletes files that nothing needs any more.
  absl::Status ReclaimSpace();

  // Calls `visit(key, value)` for every key with `prefix`, in ascending order, until it fails.
  // Returns the first error of `visit` or of reading. The views are valid during the call.
  template <typename Visit>
  absl::Status ForEach(Family of, std::string_view prefix, Visit visit) const {
    return ForEach(rocksdb::ReadOptions(), of, prefix, std::move(visit));
  }
  template <typename Visit>
  absl::Status ForEach(const rocksdb::ReadOptions& options, Family of, std::string_view prefix,
                       Visit visit) const {
    std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options, family(of)));
    for (it->Seek(ToSlice(prefix)); it->Valid() && it->key().starts_with(ToSlice(prefix));
         it->Next()) {
      if (absl::Status status = visit(ToView(it->key()), ToView(it->value())); !status.ok()) {
        return status;
      }
    }
    return FromRocksDb(it->status(), "reading the store");
  }

  // Returns the bytes of tables, blob files and memtables; from memory, without the logs.
  uint64_t Bytes() const;
  // Returns the state from memory; waits for nothing but RocksDB's own mutex.
  DatabaseState State() const;
  // Lists the directory and returns the bytes of the log's files, those about to be deleted
  // included.
  absl::StatusOr<uint64_t> WalBytes() const;

  const std::string& path() const { return path_; }
  rocksdb::Env& env() const { return *env_; }
  // Damage of the log found by this opening.
  const std::vector<WalDamage>& wal_damage() const { return wal_damage_; }
  // Returns whether the loss from a damaged log has still to be determined. Also true if an earlier
  // process found the damage and ended before it was done; ForgetWalDamage resets it.
  bool has_wal_damage() const { return has_wal_damage_; }
  absl::Status ForgetWalDamage();
  // Verifies every checksum of the table file with this name, without its leading slash, as listed
  // by GetLiveFilesMetaData.
  absl::Status VerifyTable(const std::string& name) const;

 private:
  Database(std::string path, rocksdb::Env* env);
  static absl::StatusOr<std::unique_ptr<Database>> OpenAs(const std::string& path,
                                                          rocksdb::Env* env, bool to_read);
  // The steps of OpenAs.
  rocksdb::Status TryOpen(rocksdb::WALRecoveryMode mode, bool to_read);
  absl::Status LockDirectory();
  // See the comments in the .cc file.
  absl::Status Resume();
  absl::Status Finish(const rocksdb::Status& status, std::string_view doing);
  absl::Status Anchor();
  absl::StatusOr<std::vector<WalDamage>> FindWalDamage() const;
  absl::Status RepairWal(const std::vector<WalDamage>& damage, bool to_read);
  absl::Status RememberWalDamage();
  absl::Status CheckFormat(bool to_read);

  const std::string path_;
  rocksdb::Env* const env_;
  rocksdb::FileLock* lock_ = nullptr;  // only if opened to read; else RocksDB holds it
  std::vector<WalDamage> wal_damage_;
  bool has_wal_damage_ = false;
  std::unique_ptr<rocksdb::DB> db_;
  std::atomic<bool> failed_ = false;  // the last write failed
  std::atomic<bool> must_reopen_ = false;
  // Longer than writing all memtables to a slow disk takes, as resuming flushes them.
  std::chrono::nanoseconds resume_patience_ = std::chrono::seconds(30);
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
};

// Moves an iterator to the first key after all keys with this prefix. It is invalid afterwards if
// none follows. Never moves it backwards, so loops that use it end.
void SeekPastPrefix(rocksdb::Iterator& it, std::string_view prefix);

}  // namespace neurontrace
