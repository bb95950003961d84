// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/database.h"

#include <rocksdb/convenience.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_reader.h>

#include <algorithm>
#include <charconv>
#include <thread>

#include "aggregator/store/keys.h"
#include "aggregator/store/store_files.h"
#include "aggregator/store/store_format.h"
#include "lib/base/mutex.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// In family `meta`, with the version as decimal text.
constexpr std::string_view kFormatVersionKey = "format";
// The key that development versions before 0.1.0 used. Their stores are refused.
constexpr std::string_view kOldFormatVersionKey = "format_version";
// Enough to need a block of its own on common file systems.
constexpr size_t kProbeBytes = 4'096;

// Opening replaces the damaged log, so a file has to record what remains to be done.
std::string WalDamageNote(const std::string& path) {
  return fmt::format("{}/{}", path, kWalDamageFile);
}

// RocksDB opens a database only with all of its families. A family that a newer version has added
// must not turn the clear message about the format into an obscure one. A store of an older version
// may lack the last families: opened to write it gets them, opened to read it stays without, and
// nothing asks for them.
void FitFamilies(const std::string& path, rocksdb::Env* env, bool to_read,
                 std::vector<rocksdb::ColumnFamilyDescriptor>& families) {
  std::vector<std::string> names;
  if (!rocksdb::DB::ListColumnFamilies(DatabaseOptions(env), path, &names).ok()) return;  // is new
  for (const std::string& name : names) {
    const bool is_known = std::any_of(families.begin(), families.end(),
                                      [&](const auto& family) { return family.name == name; });
    if (!is_known) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  }
  if (!to_read) return;
  std::erase_if(families, [&](const rocksdb::ColumnFamilyDescriptor& family) {
    return std::find(names.begin(), names.end(), family.name) == names.end();
  });
}

}  // namespace

// A property that RocksDB does not know counts as 0.
DatabaseState Database::State() const {
  using Properties = rocksdb::DB::Properties;
  const auto of_all = [this](const std::string& property) {
    uint64_t sum = 0;
    return db_->GetAggregatedIntProperty(property, &sum) ? sum : 0;
  };
  // Properties of the whole database, whichever family is asked.
  const auto of_one = [this](const std::string& property) {
    uint64_t value = 0;
    return db_->GetIntProperty(property, &value) ? value : 0;
  };
  return {.memtable_bytes = of_all(Properties::kSizeAllMemTables),
          .blob_garbage_bytes = of_all(Properties::kLiveBlobFileGarbageSize),
          .compaction_pending_bytes = of_all(Properties::kEstimatePendingCompactionBytes),
          .background_errors = of_one(Properties::kBackgroundErrors),
          .write_stalled = of_one(Properties::kIsWriteStopped) != 0 ||
                           of_one(Properties::kActualDelayedWriteRate) != 0};
}

absl::StatusOr<uint64_t> Database::WalBytes() const {
  std::vector<std::string> names;
  RETURN_IF_ERROR(FromRocksDb(env_->GetChildren(path_, &names), "listing the store's directory"));
  uint64_t sum = 0;
  for (const std::string& name : names) {
    if (!IsWalFile(name)) continue;
    uint64_t bytes = 0;
    // A file that is no longer needed can vanish at any time.
    if (env_->GetFileSize(path_ + "/" + name, &bytes).ok()) sum += bytes;
  }
  return sum;
}

Database::Database(std::string path, rocksdb::Env* env)
    : path_(std::move(path)), env_(env != nullptr ? env : rocksdb::Env::Default()) {}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& path,
                                                         rocksdb::Env* env) {
  return OpenAs(path, env, false);
}

absl::StatusOr<std::unique_ptr<Database>> Database::OpenToRead(const std::string& path,
                                                               rocksdb::Env* env) {
  return OpenAs(path, env, true);
}

// The order matters: the directory is checked before anything in it is touched, and the log before
// RocksDB reads it.
absl::StatusOr<std::unique_ptr<Database>> Database::OpenAs(const std::string& path,
                                                           rocksdb::Env* env, bool to_read) {
  std::unique_ptr<Database> database(new Database(path, env));
  RETURN_IF_ERROR(CheckStoreDirectory(path, *database->env_));
  if (to_read) RETURN_IF_ERROR(database->LockDirectory());
  // Before RocksDB reads the log: it silently skips a header of zeros and the rest of its block.
  ASSIGN_OR_RETURN(std::vector<WalDamage> damage, database->FindWalDamage());
  const bool is_seen = std::any_of(damage.begin(), damage.end(),
                                   [](const WalDamage& place) { return place.records_follow; });
  if (is_seen) RETURN_IF_ERROR(database->RepairWal(damage, to_read));
  // Strict: only the end of a log may be torn. RocksDB's lenient modes drop whole records.
  using enum rocksdb::WALRecoveryMode;
  const auto strict = kTolerateCorruptedTailRecords;
  const auto mode = is_seen && to_read ? kSkipAnyCorruptedRecords : strict;
  rocksdb::Status opened = database->TryOpen(mode, to_read);
  // RocksDB does not accept every torn end; rewriting the log without it makes the log acceptable.
  if (opened.IsCorruption() && !is_seen && !damage.empty()) {
    RETURN_IF_ERROR(database->RepairWal(damage, to_read));
    opened = database->TryOpen(to_read ? kSkipAnyCorruptedRecords : strict, to_read);
  }
  RETURN_IF_ERROR(FromRocksDb(opened, fmt::format("cannot open the store at '{}'", path)));
  database->has_wal_damage_ = database->env_->FileExists(WalDamageNote(path)).ok();
  if (absl::Status status = database->CheckFormat(to_read); !status.ok()) {
    return absl::Status(status.code(),
                        fmt::format("store {}: {}", path, std::string(status.message())));
  }
  if (!to_read) RETURN_IF_ERROR(database->Anchor());
  return database;
}

// A directory without CURRENT has no database yet, and so no log.
absl::StatusOr<std::vector<WalDamage>> Database::FindWalDamage() const {
  if (!env_->FileExists(path_ + "/CURRENT").ok()) return std::vector<WalDamage>();
  return ScanWal(path_, *env_, [](std::string_view) { return absl::OkStatus(); });
}

absl::Status Database::RepairWal(const std::vector<WalDamage>& damage, bool to_read) {
  wal_damage_ = damage;
  if (to_read) return absl::OkStatus();  // only reported
  // RocksDB has not taken its lock yet: without it two processes could rewrite one log.
  rocksdb::FileLock* lock = nullptr;
  RETURN_IF_ERROR(FromRocksDb(env_->LockFile(path_ + "/LOCK", &lock),
                              fmt::format("cannot open the store at '{}'", path_)));
  // The note first: once the log is replaced nothing else shows that something is missing.
  absl::Status status = RememberWalDamage();
  if (status.ok()) status = RewriteDamagedLogs(path_, *env_);
  env_->UnlockFile(lock).PermitUncheckedError();
  return status;
}

absl::Status Database::RememberWalDamage() {
  std::string text;
  for (const WalDamage& damage : wal_damage_) text += damage.ToString() + "\n";
  return FromRocksDb(rocksdb::WriteStringToFile(env_, text, WalDamageNote(path_), true),
                     "recording that the log is damaged");
}

absl::Status Database::ForgetWalDamage() {
  has_wal_damage_ = false;
  return FromRocksDb(env_->DeleteFile(WalDamageNote(path_)), "removing the note of a damaged log");
}

rocksdb::Status Database::TryOpen(rocksdb::WALRecoveryMode mode, bool to_read) {
  auto families = FamilyDescriptors();
  FitFamilies(path_, env_, to_read, families);
  rocksdb::DBOptions options = DatabaseOptions(env_);
  options.wal_recovery_mode = mode;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status =
      to_read ? rocksdb::DB::OpenForReadOnly(options, path_, families, &handles, &db)
              : rocksdb::DB::Open(options, path_, families, &handles, &db);
  if (!status.ok()) return status;
  db_.reset(db);
  // RocksDB's default family is reached without a handle. Foreign families, if any, are at the end.
  db->DestroyColumnFamilyHandle(handles.front());
  handles_.assign(handles.begin() + 1, handles.end());
  return status;
}

// RocksDB takes no lock when it opens to read, and files can disappear under a reader while another
// process writes.
absl::Status Database::LockDirectory() {
  if (!env_->FileExists(path_ + "/CURRENT").ok()) {
    return NotFound("there is no store in {}", path_);
  }
  const std::string lock = path_ + "/LOCK";
  if (!env_->FileExists(lock).ok()) return absl::OkStatus();  // a copy: nobody opens it
  const absl::Status status = FromRocksDb(env_->LockFile(lock, &lock_),
                                          fmt::format("cannot open the store at '{}'", path_));
  // Nobody can write there, so there is nobody to keep away.
  const bool read_only = status.message().find("Read-only file system") != std::string::npos;
  return read_only ? absl::OkStatus() : status;
}

Database::~Database() {
  for (rocksdb::ColumnFamilyHandle* handle : handles_) db_->DestroyColumnFamilyHandle(handle);
  db_.reset();
  if (lock_ != nullptr) env_->UnlockFile(lock_);
}

// Called after opening, as the version is in the database. A new database gets the current version.
absl::Status Database::CheckFormat(bool to_read) {
  const auto text = Get(Family::kMeta, kFormatVersionKey);
  if (absl::IsNotFound(text.status())) {
    if (Get(Family::kMeta, kOldFormatVersionKey).ok()) {
      return FailedPrecondition(
          "it was written by a development version before 0.1.0, which releases cannot read; "
          "choose another directory, or remove this one");
    }
    // A writer may have created the directory a moment ago; a reader must not complete it.
    if (to_read) return DataLoss("its format version is missing");
    return Put(Family::kMeta, kFormatVersionKey, std::to_string(kStoreFormatVersion), true);
  }
  if (!text.ok()) return text.status();
  uint64_t version = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), version);
  if (error != std::errc() || end != text->data() + text->size() || version == 0) {
    return DataLoss("its format version is '{}', which is not a number", *text);
  }
  if (version > kStoreFormatVersion) {
    return FailedPrecondition(
        "it has format {} of a newer neurontrace, and this version reads formats up to {}; install "
        "the newer version, or choose another directory",
        version, kStoreFormatVersion);
  }
  return absl::OkStatus();
}

absl::Status Database::VerifyTable(const std::string& name) const {
  rocksdb::SstFileReader reader(rocksdb::Options(DatabaseOptions(env_), {}));
  const std::string doing = fmt::format("verifying {}", name);
  RETURN_IF_ERROR(FromRocksDb(reader.Open(path_ + "/" + name), doing));
  return FromRocksDb(reader.VerifyChecksum(), doing);
}

// Reads the present state, without a snapshot.
absl::StatusOr<std::string> Database::Get(Family of, std::string_view key) const {
  std::string value;
  const rocksdb::Status status = db_->Get({}, family(of), ToSlice(key), &value);
  if (!status.ok()) return FromRocksDb(status, fmt::format("reading {}", FamilyName(of)));
  return value;
}

absl::Status Database::Put(Family of, std::string_view key, std::string_view value, bool sync) {
  rocksdb::WriteBatch batch;
  batch.Put(family(of), ToSlice(key), ToSlice(value));
  return Write(batch, sync, fmt::format("writing {}", FamilyName(of)));
}

// A failed write makes RocksDB refuse further ones, so the next writer resumes it first. Nobody
// else does; see database_options.cc.
absl::Status Database::Write(rocksdb::WriteBatch& batch, bool sync, std::string_view doing) {
  if (failed_) {
    RETURN_IF_ERROR(Resume());
    RETURN_IF_ERROR(Anchor());
  }
  rocksdb::WriteOptions options;
  options.sync = sync;
  const rocksdb::Status status = db_->Write(options, &batch);
  failed_ = !status.ok();
  return Finish(status, doing);
}

// RocksDB regards some errors as fatal, above all a log file that could not be created, and refuses
// to resume after one.
absl::Status Database::Finish(const rocksdb::Status& status, std::string_view doing) {
  if (status.severity() >= rocksdb::Status::Severity::kFatalError) must_reopen_ = true;
  return FromRocksDb(status, doing);
}

absl::Status Database::ProbeDisk() const {
  const std::string file = path_ + "/0.dbtmp";  // RocksDB deletes one left by a crash
  constexpr char kDoing[] = "testing a write to the store's disk";
  std::unique_ptr<rocksdb::WritableFile> out;
  RETURN_IF_ERROR(FromRocksDb(env_->NewWritableFile(file, &out, {}), kDoing));
  rocksdb::Status status = out->Append(std::string(kProbeBytes, '\0'));
  if (status.ok()) status = out->Sync();
  const rocksdb::Status closed = out->Close();
  if (status.ok()) status = closed;
  env_->DeleteFile(file).PermitUncheckedError();
  return FromRocksDb(status, kDoing);
}

// RocksDB's Resume waits for a flush of each family. A flush scheduled before the error that gets
// its turn after it is removed from RocksDB's count but not from its queue. Another flush of that
// family is then never scheduled, and Resume would wait for ever. Cancelling background work makes
// it return.
//
// An error of other work during Resume can do the same to one of its own flushes. Therefore work
// that is running ends first, and paused work cannot start in between.
// thread: resume watch: cancels background work if RocksDB does not resume in time
absl::Status Database::Resume() {
  Mutex mutex;
  CondVar changed;
  bool done = false;      // under `mutex`
  bool given_up = false;  // written by `watch`, read after it has joined
  std::thread watch([&] {
    const MutexLock lock(mutex);
    given_up = !changed.WaitFor(mutex, resume_patience_, [&] { return done; });
    if (given_up) rocksdb::CancelAllBackgroundWork(db_.get(), /*wait=*/false);
  });
  rocksdb::Status status = db_->PauseBackgroundWork();
  if (status.ok()) status = db_->ContinueBackgroundWork();
  if (status.ok()) status = db_->Resume();
  {
    const MutexLock lock(mutex);
    done = true;
  }
  changed.NotifyOne();
  watch.join();
  if (given_up) {
    must_reopen_ = true;
    return Unavailable("the store did not resume after a failed write; it must be reopened");
  }
  return Finish(status, "resuming after a failed write");
}

// RocksDB creates a new log, in place of one that it could not write, only when it flushes a
// memtable with contents. A key that is written to no log guarantees such a memtable.
absl::Status Database::Anchor() {
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  return Finish(db_->Put(options, "anchor", ""), "preparing the store for writing");
}

// A range deletion is one entry, however many keys it covers.
absl::Status Database::DeleteRange(Family of, std::string_view begin, std::string_view end) {
  const std::string doing = fmt::format("deleting from {}", FamilyName(of));
  const rocksdb::Slice from = ToSlice(begin);
  const rocksdb::Slice to = ToSlice(end);
  rocksdb::WriteBatch batch;
  batch.DeleteRange(family(of), from, to);
  RETURN_IF_ERROR(Write(batch, /*sync=*/true, doing));
  // Only a compaction lets files go. It is cheap: it reads keys alone, as values are in blob files.
  rocksdb::CompactRangeOptions compact;
  compact.exclusive_manual_compaction = false;
  compact.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  return Finish(db_->CompactRange(compact, family(of), &from, &to), doing);
}

// A log is needed until every family has written its part of it to a file, so all are flushed.
absl::Status Database::Flush() {
  std::vector<rocksdb::ColumnFamilyHandle*> all = handles_;
  all.push_back(db_->DefaultColumnFamily());
  RETURN_IF_ERROR(Finish(db_->Flush({}, all), "flushing the store"));
  return Anchor();
}

absl::Status Database::ReclaimSpace() {
  RETURN_IF_ERROR(Flush());
  // Enabling deletions, with force, runs them at once instead of when RocksDB next looks for files.
  RETURN_IF_ERROR(FromRocksDb(db_->DisableFileDeletions(), "deleting files"));
  return FromRocksDb(db_->EnableFileDeletions(true), "deleting files");
}

// A property that is not available counts as 0: the sum is for quotas and metrics.
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

void SeekPastPrefix(rocksdb::Iterator& it, std::string_view prefix) {
  it.Seek(keys::PrefixEnd(prefix));
  // The prefix is nothing but 0xff, and this key is longer than PrefixEnd assumes.
  if (!it.Valid() || !it.key().starts_with({prefix.data(), prefix.size()})) return;
  it.SeekToLast();
  if (it.Valid()) it.Next();
}

}  // namespace neurontrace
