// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace neurontrace {

// The disk. Abstract so tests have one that tears writes, forgets what was not synced, fills up and
// fails (lib/base/fake_file_system.h).
//
// Errors name the operation and the path. NOT_FOUND: it is not there; ALREADY_EXISTS; DATA_LOSS:
// it is no regular file but a link, a FIFO, a socket or a device;
// RESOURCE_EXHAUSTED: the disk or the quota is full; FAILED_PRECONDITION: the file system is
// read-only, or access is denied; UNAVAILABLE: anything else that a disk says, as EIO.
// Calls block. The system's may come from any thread, a file's from one thread at a time.
class FileSystem {
 public:
  // An open file. Closing (destroying) it makes nothing durable.
  class File {
   public:
    virtual ~File() = default;
    // Puts `bytes` at the end. After an error any part of them may be there.
    virtual absl::Status Append(std::string_view bytes) = 0;
    // All that was appended survives a crash. After an error nothing is known about what was
    // appended since the last good Sync, and a later success says nothing about it either.
    virtual absl::Status Sync() = 0;
    // The bytes from `offset` on: `bytes_max` of them, or fewer at the end of the file.
    virtual absl::StatusOr<std::string> Read(uint64_t offset, size_t bytes_max) = 0;
    virtual absl::StatusOr<uint64_t> Size() = 0;
  };
  struct Entry {
    std::string name;
    bool is_directory = false;
    uint64_t bytes = 0;  // of a file
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  // Of the file system that a directory lies on: its size, and what is left for this user.
  struct Capacity {
    uint64_t total_bytes = 0;
    uint64_t free_bytes = 0;
  };
  // Keeps a lock until it is destroyed.
  class Lock {
   public:
    virtual ~Lock() = default;
  };

  virtual ~FileSystem() = default;

  // A new and empty file for this user alone; one that is there under the name is emptied.
  virtual absl::StatusOr<std::unique_ptr<File>> Create(const std::string& path) = 0;
  virtual absl::StatusOr<std::unique_ptr<File>> OpenForReading(const std::string& path) = 0;
  // What is in a directory, by name; RESOURCE_EXHAUSTED beyond `entries_max`.
  virtual absl::StatusOr<std::vector<Entry>> List(const std::string& directory,
                                                  size_t entries_max) = 0;
  // With its parents; one that is there already is no error.
  virtual absl::Status MakeDirectory(const std::string& path) = 0;
  // Takes the place of what is called `to`, at once or not at all.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // A file or an empty directory.
  virtual absl::Status Remove(const std::string& path) = 0;
  // What was created, renamed and removed in the directory survives a crash.
  virtual absl::Status SyncDirectory(const std::string& directory) = 0;
  // For this process alone: FAILED_PRECONDITION while another holds it.
  virtual absl::StatusOr<std::unique_ptr<Lock>> TakeLock(const std::string& path) = 0;
  virtual absl::StatusOr<Capacity> CapacityOf(const std::string& directory) = 0;
};

// The machine's own, by POSIX.
class SystemFileSystem final : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<File>> OpenForReading(const std::string& path) override;
  absl::StatusOr<std::vector<Entry>> List(const std::string& directory,
                                          size_t entries_max) override;
  absl::Status MakeDirectory(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& directory) override;
  absl::StatusOr<std::unique_ptr<Lock>> TakeLock(const std::string& path) override;
  absl::StatusOr<Capacity> CapacityOf(const std::string& directory) override;
};

// Another file system whose syncs cost and do nothing: what was written survives the end of the
// program, as the kernel has it, and not that of the machine. `files` is not owned. As thread-safe
// as that one.
class UnsyncedFileSystem final : public FileSystem {
 public:
  explicit UnsyncedFileSystem(FileSystem& files) : files_(files) {}

  absl::StatusOr<std::unique_ptr<File>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<File>> OpenForReading(const std::string& path) override {
    return files_.OpenForReading(path);
  }
  absl::StatusOr<std::vector<Entry>> List(const std::string& directory,
                                          size_t entries_max) override {
    return files_.List(directory, entries_max);
  }
  absl::Status MakeDirectory(const std::string& path) override {
    return files_.MakeDirectory(path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return files_.Rename(from, to);
  }
  absl::Status Remove(const std::string& path) override { return files_.Remove(path); }
  absl::Status SyncDirectory(const std::string&) override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<Lock>> TakeLock(const std::string& path) override {
    return files_.TakeLock(path);
  }
  absl::StatusOr<Capacity> CapacityOf(const std::string& directory) override {
    return files_.CapacityOf(directory);
  }

 private:
  FileSystem& files_;
};

}  // namespace neurontrace
