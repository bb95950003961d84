// SPDX-License-Identifier: Apache-2.0
#include "lib/base/unsynced_file_system.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Passes everything on but Sync.
class UnsyncedFile final : public FileSystem::File {
 public:
  explicit UnsyncedFile(std::unique_ptr<FileSystem::File> file) : file_(std::move(file)) {}

  absl::Status Append(std::string_view bytes) override { return file_->Append(bytes); }
  absl::Status Sync() override { return absl::OkStatus(); }
  absl::StatusOr<std::string> Read(uint64_t offset, size_t bytes_max) override {
    return file_->Read(offset, bytes_max);
  }
  absl::StatusOr<uint64_t> Size() override { return file_->Size(); }

 private:
  std::unique_ptr<FileSystem::File> file_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FileSystem::File>> UnsyncedFileSystem::Create(
    const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, files_.Create(path));
  return std::make_unique<UnsyncedFile>(std::move(file));
}

}  // namespace neurontrace
