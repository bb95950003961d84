// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/file_system.h"

namespace neurontrace {

// Another file system whose syncs do nothing and cost nothing: written data survives the end of the
// program, as the kernel keeps it, but not a crash of the machine. `files` is not owned and must
// outlive this. As thread-safe as `files`.
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
