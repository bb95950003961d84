// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file_system.h"

namespace neurontrace {

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
