// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/crash_env.h"

#include <rocksdb/file_system.h>

#include <atomic>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/crc32c.h"
#include "tests/sim/sim_world.h"

namespace neurontrace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

// What outlives one process: how much of each file a power cut leaves.
struct CrashDisk::State {
  struct File {
    uint64_t bytes = 0;
    uint64_t synced = 0;
  };
  const uint64_t seed;
  uint64_t crashes = 0;
  std::atomic<Fault> fault = Fault::kNone;
  std::mutex mutex;
  std::map<std::string, File> files;  // guarded by mutex: those with something not synced
  std::set<std::string> directories;  // guarded by mutex
};

namespace {

IOStatus Dead() { return IOStatus::IOError("the process is dead"); }

}  // namespace

class CrashDisk::Writable final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  Writable(std::unique_ptr<rocksdb::FSWritableFile> target, std::string name,
           std::shared_ptr<State> state, std::shared_ptr<std::atomic<bool>> dead)
      : FSWritableFileOwnerWrapper(std::move(target)),
        name_(std::move(name)),
        state_(std::move(state)),
        dead_(std::move(dead)) {}

  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  IODebugContext* context) override {
    if (const IOStatus status = Check(); !status.ok()) return status;
    const IOStatus status = FSWritableFileOwnerWrapper::Append(data, options, context);
    if (status.ok()) {
      const std::lock_guard lock(state_->mutex);
      state_->files[name_].bytes += data.size();
    }
    return status;
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo&, IODebugContext* context) override {
    return Append(data, options, context);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* context) override {
    if (const IOStatus status = Check(); !status.ok()) return status;
    const IOStatus status = FSWritableFileOwnerWrapper::Sync(options, context);
    if (status.ok()) MarkSynced();
    return status;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* context) override {
    return Sync(options, context);
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* context) override {
    if (*dead_) return Dead();
    return FSWritableFileOwnerWrapper::Truncate(size, options, context);
  }

 private:
  IOStatus Check() const {
    if (*dead_) return Dead();
    switch (state_->fault.load()) {
      case Fault::kNone:
        return IOStatus::OK();
      case Fault::kNoSpace:
        return IOStatus::NoSpace("no space left on device");
      case Fault::kIoError:
        return IOStatus::IOError("input/output error");
    }
    return IOStatus::OK();
  }
  void MarkSynced() {
    const std::lock_guard lock(state_->mutex);
    State::File& file = state_->files[name_];
    file.synced = file.bytes;
  }

  const std::string name_;
  const std::shared_ptr<State> state_;
  const std::shared_ptr<std::atomic<bool>> dead_;
};

class CrashDisk::Files final : public rocksdb::FileSystemWrapper {
 public:
  Files(const std::shared_ptr<rocksdb::FileSystem>& target, std::shared_ptr<State> state)
      : FileSystemWrapper(target), state_(std::move(state)) {}
  const char* Name() const override { return "CrashDisk"; }

  void Kill() { *dead_ = true; }

  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext* context) override {
    if (*dead_) return Dead();
    std::unique_ptr<rocksdb::FSWritableFile> file;
    const IOStatus status = FileSystemWrapper::NewWritableFile(name, options, &file, context);
    if (!status.ok()) return status;
    {
      const std::lock_guard lock(state_->mutex);
      state_->files[name] = {};
    }
    *result = std::make_unique<Writable>(std::move(file), name, state_, dead_);
    return status;
  }
  IOStatus ReopenWritableFile(const std::string& name, const FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* result,
                              IODebugContext* context) override {
    return NewWritableFile(name, options, result, context);
  }
  IOStatus DeleteFile(const std::string& name, const IOOptions& options,
                      IODebugContext* context) override {
    if (*dead_) return Dead();
    {
      const std::lock_guard lock(state_->mutex);
      state_->files.erase(name);
    }
    return FileSystemWrapper::DeleteFile(name, options, context);
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      IODebugContext* context) override {
    if (*dead_) return Dead();
    {
      const std::lock_guard lock(state_->mutex);
      auto node = state_->files.extract(from);
      state_->files.erase(to);
      if (!node.empty()) {
        node.key() = to;
        state_->files.insert(std::move(node));
      }
    }
    return FileSystemWrapper::RenameFile(from, to, options, context);
  }
  // RocksDB's files in memory do not know which of them are directories.
  IOStatus CreateDir(const std::string& name, const IOOptions& options,
                     IODebugContext* context) override {
    if (*dead_) return Dead();
    const std::lock_guard lock(state_->mutex);
    state_->directories.insert(name);
    return FileSystemWrapper::CreateDir(name, options, context);
  }
  IOStatus CreateDirIfMissing(const std::string& name, const IOOptions& options,
                              IODebugContext* context) override {
    if (*dead_) return Dead();
    const std::lock_guard lock(state_->mutex);
    state_->directories.insert(name);
    return FileSystemWrapper::CreateDirIfMissing(name, options, context);
  }
  IOStatus DeleteDir(const std::string& name, const IOOptions& options,
                     IODebugContext* context) override {
    if (*dead_) return Dead();
    const std::lock_guard lock(state_->mutex);
    state_->directories.erase(name);
    return FileSystemWrapper::DeleteDir(name, options, context);
  }
  IOStatus IsDirectory(const std::string& name, const IOOptions&, bool* is_directory,
                       IODebugContext*) override {
    const std::lock_guard lock(state_->mutex);
    *is_directory = state_->directories.contains(name);
    return IOStatus::OK();
  }

 private:
  const std::shared_ptr<State> state_;
  const std::shared_ptr<std::atomic<bool>> dead_ = std::make_shared<std::atomic<bool>>(false);
};

CrashDisk::CrashDisk(uint64_t seed, const std::string& directory, const Contents& contents)
    : state_(new State{.seed = seed}), memory_(rocksdb::NewMemEnv(rocksdb::Env::Default())) {
  if (directory.empty()) return;
  state_->directories.insert(directory);
  memory_->CreateDirIfMissing(directory).PermitUncheckedError();
  for (const auto& [name, text] : contents) {
    rocksdb::WriteStringToFile(memory_.get(), text, name, false).PermitUncheckedError();
  }
}

CrashDisk::~CrashDisk() = default;

rocksdb::Env* CrashDisk::Open() {
  files_ = std::make_shared<Files>(memory_->GetFileSystem(), state_);
  env_ = rocksdb::NewCompositeEnv(files_);
  return env_.get();
}

void CrashDisk::SetFault(Fault fault) { state_->fault = fault; }

CrashDisk::Fault CrashDisk::fault() const { return state_->fault; }

CrashDisk::Contents CrashDisk::Read(const std::string& directory) const {
  Contents contents;
  std::vector<std::string> names;
  memory_->GetChildren(directory, &names).PermitUncheckedError();
  for (const std::string& name : names) {
    const std::string path = directory + "/" + name;
    if (name == "LOCK") continue;
    rocksdb::ReadFileToString(memory_.get(), path, &contents[path]).PermitUncheckedError();
  }
  return contents;
}

void CrashDisk::Crash(bool power_lost) {
  files_->Kill();
  ++state_->crashes;
  const std::lock_guard lock(state_->mutex);
  if (power_lost) {
    for (auto& [name, file] : state_->files) {
      if (file.synced >= file.bytes) continue;
      // Not from one row of dice: which other files there are depends on RocksDB's threads.
      SimRandom random(state_->seed ^ state_->crashes ^ Crc32c(name.data(), name.size()));
      std::string contents;
      if (!rocksdb::ReadFileToString(memory_.get(), name, &contents).ok()) continue;
      const uint64_t kept =
          random.Between(file.synced, std::min<uint64_t>(file.bytes, contents.size()));
      contents.resize(kept);
      if (kept > file.synced && random.Chance(300)) {
        contents[random.Between(file.synced, kept - 1)] ^= 0x40;
      }
      rocksdb::WriteStringToFile(memory_.get(), contents, name, false).PermitUncheckedError();
      file.bytes = kept;
    }
  }
  // What is on the disk now stays there.
  for (auto& [name, file] : state_->files) file.synced = file.bytes;
}

}  // namespace neurontrace
