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

// How RocksDB does, by what it reports about itself; docs/operator/metrics.md has the words. A
// plain value.
struct DatabaseState {
  uint64_t memtable_bytes = 0;
  uint64_t blob_garbage_bytes = 0;
  uint64_t compaction_pending_bytes = 0;
  uint64_t background_errors = 0;  // since it was opened
  bool write_stalled = false;      // writers wait, or are slowed down
};

inline rocksdb::Slice ToSlice(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view ToView(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

// The open database: RocksDB with our families and options, and nothing about what is in them but
// the format version. Included only by the .cc files of this folder. Any thread.
class Database {
 public:
  // Makes the directory and the families where they are not there yet. A log whose last write is
  // torn opens without a word, as nothing in it was acknowledged; one that is damaged otherwise
  // gives all that is whole in it, and wal_damage() says so. FAILED_PRECONDITION when another
  // process has it open or when its format is newer than this build's, DATA_LOSS when it is
  // damaged beyond that. `env` is not owned; nullptr is the machine's.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path, rocksdb::Env* env);
  // The same without changing or making any file. NOT_FOUND where there is no store. Another
  // process is kept away as long as this is open, where the file system can be written to.
  static absl::StatusOr<std::unique_ptr<Database>> OpenToRead(const std::string& path,
                                                              rocksdb::Env* env);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  rocksdb::DB& db() const { return *db_; }
  rocksdb::ColumnFamilyHandle* family(Family family) const {
    return handles_[static_cast<size_t>(family)];
  }

  // nullopt-like: NOT_FOUND where there is no such key.
  absl::StatusOr<std::string> Get(Family family, std::string_view key) const;
  absl::Status Put(Family family, std::string_view key, std::string_view value, bool sync);
  // All writes go through here. RocksDB stops after one that failed; the next one first resumes it,
  // so that a disk that was full is used as soon as there is room. After some errors RocksDB cannot
  // be resumed: no write succeeds any more, and must_reopen() says so.
  absl::Status Write(rocksdb::WriteBatch& batch, bool sync, std::string_view doing);

  // Removes [begin, end) of a family and compacts what is left there.
  absl::Status DeleteRange(Family family, std::string_view begin, std::string_view end);

  // Whether only closing and opening the database again can make it take writes: RocksDB could not
  // create a file of its write-ahead log, for lack of space, inodes or quota, or did not finish to
  // resume within the patience. Reads still work.
  bool must_reopen() const { return must_reopen_; }
  // Creates, writes, syncs and deletes a small file in the directory, as opening would. Fails as
  // long as opening the database would fail for lack of space, inodes or quota.
  absl::Status ProbeDisk() const;

  void SetResumePatience(std::chrono::nanoseconds patience) { resume_patience_ = patience; }

  // Everything written so far is in files, and in no log.
  absl::Status Flush();
  // After deleting: lets go of the log and of every file that is not needed any more.
  absl::Status GiveSpaceBack();

  // Calls `visit(key, value)` for every key that begins with `prefix`, in order, until it fails.
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

  // Bytes on disk.
  uint64_t Bytes() const;
  // Waits for RocksDB's lock at most.
  DatabaseState State() const;
  // Of the log's files, also of those that are about to go. Asks the disk.
  absl::StatusOr<uint64_t> WalBytes() const;

  const std::string& path() const { return path_; }
  rocksdb::Env& env() const { return *env_; }
  // What of the log could not be read when this was opened.
  const std::vector<WalDamage>& wal_damage() const { return wal_damage_; }
  // Whether what a damaged log lacked has still to be found out, also when that was begun by a
  // process that did not get to its end.
  bool has_wal_damage() const { return has_wal_damage_; }
  absl::Status ForgetWalDamage();
  // Checks every checksum of the file of this name, which GetLiveFilesMetaData has given.
  absl::Status VerifyTable(const std::string& name) const;

 private:
  Database(std::string path, rocksdb::Env* env);
  static absl::StatusOr<std::unique_ptr<Database>> OpenAs(const std::string& path,
                                                          rocksdb::Env* env, bool to_read);
  rocksdb::Status TryOpen(rocksdb::WALRecoveryMode mode, bool to_read);
  absl::Status KeepOthersAway();
  absl::Status Resume();
  absl::Status Finish(const rocksdb::Status& status, std::string_view doing);
  absl::Status Anchor();
  absl::StatusOr<std::vector<WalDamage>> FindWalDamage() const;
  absl::Status MendWal(const std::vector<WalDamage>& damage, bool to_read);
  absl::Status RememberWalDamage();
  absl::Status CheckFormat(bool to_read);

  const std::string path_;
  rocksdb::Env* const env_;
  rocksdb::FileLock* lock_ = nullptr;  // only when open to read; RocksDB has its own otherwise
  std::vector<WalDamage> wal_damage_;
  bool has_wal_damage_ = false;
  std::unique_ptr<rocksdb::DB> db_;
  std::atomic<bool> failed_ = false;  // the last write
  std::atomic<bool> must_reopen_ = false;
  // Longer than it takes to write all of the memtables to a slow disk.
  std::chrono::nanoseconds resume_patience_ = std::chrono::seconds(30);
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
};

// Moves an iterator behind every key with this prefix, and from there never back: where all its
// bytes are 0xff there is nothing behind, and the iterator is not valid then.
void SeekBehind(rocksdb::Iterator& it, std::string_view prefix);

}  // namespace neurontrace
