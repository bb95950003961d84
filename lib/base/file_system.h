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

// The disk. Abstract so that tests have one that tears writes, forgets unsynced data, fills up and
// fails (lib/base/fake_file_system.h).
//
// Errors name the operation and the path. NOT_FOUND: the file or a directory of its path does not
// exist; ALREADY_EXISTS; DATA_LOSS: the path is not a regular file but a link, a FIFO, a socket, a
// device or a directory; RESOURCE_EXHAUSTED: the disk or the quota is full; FAILED_PRECONDITION:
// the file system is read-only, or access is denied; UNAVAILABLE: any other error of the disk, such
// as EIO.
//
// Calls block, so they belong on a thread made for that. Methods of the file system may be called
// from any thread, those of a file from one thread at a time. Files and locks must not outlive the
// file system that made them.
class FileSystem {
 public:
  // An open file. Closing (destroying) it makes nothing durable.
  class File {
   public:
    virtual ~File() = default;
    // Writes `bytes` at the end. After an error any part of them may have been written.
    virtual absl::Status Append(std::string_view bytes) = 0;
    // Makes all that was appended survive a crash. After an error nothing is known about the bytes
    // that were appended since the last successful Sync, and a later success does not change that:
    // the file must be given up.
    virtual absl::Status Sync() = 0;
    // Returns `bytes_max` bytes from `offset` on, or fewer at the end of the file.
    virtual absl::StatusOr<std::string> Read(uint64_t offset, size_t bytes_max) = 0;
    // Returns the size in bytes, including what was appended and not yet synced.
    virtual absl::StatusOr<uint64_t> Size() = 0;
  };
  // A member of a directory. Links are listed as files and not followed.
  struct Entry {
    std::string name;
    bool is_directory = false;
    uint64_t bytes = 0;  // of a file
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  // The size of the file system that contains a directory, and what is left of it for this user.
  struct Capacity {
    uint64_t total_bytes = 0;
    uint64_t free_bytes = 0;
  };
  // Holds a lock on a file until destroyed; the kernel releases it when the process ends.
  class Lock {
   public:
    virtual ~Lock() = default;
  };

  virtual ~FileSystem() = default;

  // Creates an empty file that only this user may read and write, or truncates the existing one.
  virtual absl::StatusOr<std::unique_ptr<File>> Create(const std::string& path) = 0;
  // Opens an existing file; appending to it fails.
  virtual absl::StatusOr<std::unique_ptr<File>> OpenForReading(const std::string& path) = 0;
  // Returns the members of a directory, sorted by name. Fails with RESOURCE_EXHAUSTED if there are
  // more than `entries_max`.
  virtual absl::StatusOr<std::vector<Entry>> List(const std::string& directory,
                                                  size_t entries_max) = 0;
  // Creates a directory with its parents. One that exists already is no error.
  virtual absl::Status MakeDirectory(const std::string& path) = 0;
  // Replaces `to` by `from` atomically. Durable only after SyncDirectory.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // Removes a file or an empty directory.
  virtual absl::Status Remove(const std::string& path) = 0;
  // Makes the files that were created, renamed and removed in the directory survive a crash.
  virtual absl::Status SyncDirectory(const std::string& directory) = 0;
  // Takes a lock that excludes other processes, and creates its file. Fails with
  // FAILED_PRECONDITION while another holds it.
  virtual absl::StatusOr<std::unique_ptr<Lock>> TakeLock(const std::string& path) = 0;
  // Returns the capacity of the file system that contains the directory, which must exist.
  virtual absl::StatusOr<Capacity> CapacityOf(const std::string& directory) = 0;
};

// The machine's own disk, by POSIX. Stateless.
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

}  // namespace neurontrace
