// SPDX-License-Identifier: Apache-2.0
// For tests: a disk that has only so much room, or fails.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <algorithm>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "lib/base/mutex.h"

namespace neurontrace {

// For tests: the machine's file system with a limit on the bytes that can still be written. Deleted
// files do not return room. Any thread.
class FullDisk final : public rocksdb::FileSystemWrapper {
 public:
  FullDisk() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

  const char* Name() const override { return "FullDisk"; }
  void SetRoom(int64_t bytes) { *room_ = bytes; }
  void SetUnlimited() { SetRoom(INT64_MAX / 2); }
  // Every write fails with an input/output error while this is set.
  void SetFails(bool fails) { *fails_ = fails; }
  // Creating a file whose name ends with `suffix` fails with `why`, as without inodes or quota.
  void SetRefuses(std::string suffix, rocksdb::IOStatus why) {
    const MutexLock lock(mutex_);
    refused_suffix_ = std::move(suffix);
    refusal_status_ = std::move(why);
  }
  void SetRefusesNothing() { SetRefuses("", rocksdb::IOStatus::OK()); }

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* context) override {
    {
      const MutexLock lock(mutex_);
      if (!refusal_status_.ok() && name.ends_with(refused_suffix_)) return refusal_status_;
    }
    rocksdb::IOStatus status = target()->NewWritableFile(name, options, file, context);
    if (status.ok()) *file = std::make_unique<File>(std::move(*file), room_, fails_);
    return status;
  }
  rocksdb::IOStatus GetFreeSpace(const std::string&, const rocksdb::IOOptions&, uint64_t* bytes,
                                 rocksdb::IODebugContext*) override {
    *bytes = static_cast<uint64_t>(std::max<int64_t>(0, *room_));
    return rocksdb::IOStatus::OK();
  }

 private:
  class File final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    File(std::unique_ptr<rocksdb::FSWritableFile> file, std::shared_ptr<std::atomic<int64_t>> room,
         std::shared_ptr<std::atomic<bool>> fails)
        : FSWritableFileOwnerWrapper(std::move(file)),
          room_(std::move(room)),
          fails_(std::move(fails)) {}

    using FSWritableFileOwnerWrapper::Append;
    rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* context) override {
      if (*fails_) return rocksdb::IOStatus::IOError("Input/output error");
      const int64_t bytes = static_cast<int64_t>(data.size());
      const int64_t before = room_->fetch_sub(bytes);
      if (before >= bytes) return FSWritableFileOwnerWrapper::Append(data, options, context);
      // As a real one: what fits is written.
      *room_ = 0;
      if (before > 0) {
        FSWritableFileOwnerWrapper::Append({data.data(), static_cast<size_t>(before)}, options,
                                           context)
            .PermitUncheckedError();
      }
      return rocksdb::IOStatus::NoSpace("No space left on device");
    }
    rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                             const rocksdb::DataVerificationInfo&,
                             rocksdb::IODebugContext* context) override {
      return Append(data, options, context);
    }

   private:
    const std::shared_ptr<std::atomic<int64_t>> room_;
    const std::shared_ptr<std::atomic<bool>> fails_;
  };

  Mutex mutex_;
  std::string refused_suffix_ NT_GUARDED_BY(mutex_);
  rocksdb::IOStatus refusal_status_ NT_GUARDED_BY(mutex_);

  const std::shared_ptr<std::atomic<int64_t>> room_ =
      std::make_shared<std::atomic<int64_t>>(INT64_MAX / 2);
  const std::shared_ptr<std::atomic<bool>> fails_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace neurontrace
