// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/local_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// A large file is synced each time this many bytes were written, so that no single sync takes long:
// the claim must be renewed in between.
constexpr uint64_t kSyncBytes = 64u << 20;
// Bytes that are read at once to compare or to copy an old file.
constexpr size_t kCompareBytes = 1u << 20;

// A file that is written from its beginning and synced from time to time.
class SyncedFile {
 public:
  SyncedFile(UniqueFd fd, std::string where) : fd_(std::move(fd)), where_(std::move(where)) {}
  absl::Status Write(std::string_view bytes) {
    RETURN_IF_ERROR(WriteAllBytes(fd_.get(), bytes, where_));
    unsynced_bytes_ += bytes.size();
    if (unsynced_bytes_ < kSyncBytes) return absl::OkStatus();
    unsynced_bytes_ = 0;
    return fdatasync(fd_.get()) == 0 ? absl::OkStatus() : LocalError("sync", where_);
  }
  // Must be called once, as the last operation.
  absl::Status SyncAndClose() {
    if (fsync(fd_.get()) != 0) return LocalError("sync", where_);
    // NFS reports some failed writes only here, such as an exceeded quota.
    return close(fd_.release()) == 0 ? absl::OkStatus() : LocalError("close", where_);
  }
  // Returns whether this very file is still under the name, and not one that another writer put
  // there.
  bool IsAt(const LocalPlace& place) const {
    struct stat ours = {};
    struct stat there = {};
    return fd_.valid() && fstat(fd_.get(), &ours) == 0 &&
           fstatat(place.directory.get(), place.base.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
  }

 private:
  UniqueFd fd_;
  const std::string where_;
  uint64_t unsynced_bytes_ = 0;
};

// Written under a temporary name; renaming replaces an older file atomically.
class RenamedFile : public Volume::File {
 public:
  RenamedFile(LocalPlace place, std::string temporary, UniqueFd fd, std::string where)
      : place_(std::move(place)),
        temporary_(std::move(temporary)),
        file_(std::move(fd), where),
        where_(std::move(where)) {}
  ~RenamedFile() override {
    if (!is_whole_) unlinkat(place_.directory.get(), temporary_.c_str(), 0);
  }
  absl::Status Write(std::string_view bytes) override { return file_.Write(bytes); }
  absl::Status Sync() override { return file_.SyncAndClose(); }
  absl::Status Commit() override {
    const int directory = place_.directory.get();
    if (renameat(directory, temporary_.c_str(), directory, place_.base.c_str()) != 0) {
      return LinkError("rename", where_);
    }
    is_whole_ = true;
    return SyncDirectoryOf(directory, where_);
  }

 private:
  const LocalPlace place_;
  const std::string temporary_;
  SyncedFile file_;
  const std::string where_;
  bool is_whole_ = false;
};

// Written under its own name, for volumes that cannot rename. Two states: while new_ is empty, the
// bytes are only compared with the old file; from the first difference on they go into a new one.
class InPlaceFile : public Volume::File {
 public:
  InPlaceFile(LocalPlace place, std::string where)
      : place_(std::move(place)), where_(std::move(where)) {
    old_ = UniqueFd(openat(place_.directory.get(), place_.base.c_str(),
                           O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  }
  // Removes an incomplete file under its own name, unless another writer has replaced it. After
  // Sync the descriptor is closed, so that a whole file stays.
  ~InPlaceFile() override {
    const bool is_ours = new_.has_value() && new_->IsAt(place_);
    if (is_ours) unlinkat(place_.directory.get(), place_.base.c_str(), 0);
  }
  // Creates the new file at once if there is no old one to compare with.
  absl::Status Begin() { return BytesOf(old_) >= 0 ? absl::OkStatus() : Replace(); }

  absl::Status Write(std::string_view bytes) override {
    if (!new_.has_value() && !HasNext(bytes)) RETURN_IF_ERROR(Replace());
    bytes_ += bytes.size();
    return new_.has_value() ? new_->Write(bytes) : absl::OkStatus();
  }
  absl::Status Sync() override {
    // The old file is longer than what was written.
    if (!new_.has_value() && BytesOf(old_) != static_cast<off_t>(bytes_)) {
      RETURN_IF_ERROR(Replace());
    }
    if (!new_.has_value()) {
      return fsync(old_.get()) == 0 ? absl::OkStatus() : LocalError("sync", where_);
    }
    if (!new_->IsAt(place_)) return Replaced();
    return new_->SyncAndClose();
  }
  // Nothing is renamed: the file has its name already, unless another writer interfered.
  absl::Status Commit() override {
    struct stat there = {};
    const int directory = place_.directory.get();
    const bool is_there =
        fstatat(directory, place_.base.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
        static_cast<uint64_t>(there.st_size) == bytes_;
    return is_there ? SyncDirectoryOf(directory, where_) : Replaced();
  }

 private:
  // Returns -1 if there is no regular file.
  static off_t BytesOf(const UniqueFd& fd) {
    struct stat about = {};
    const bool is_file = fd.valid() && fstat(fd.get(), &about) == 0 && S_ISREG(about.st_mode);
    return is_file ? about.st_size : -1;
  }
  // Returns whether the old file continues with these bytes.
  bool HasNext(std::string_view bytes) const {
    std::string there(std::min(bytes.size(), kCompareBytes), '\0');
    for (uint64_t at = bytes_; !bytes.empty();) {
      const ssize_t got = pread(old_.get(), there.data(), std::min(bytes.size(), there.size()),
                                static_cast<off_t>(at));
      if (got <= 0 || bytes.substr(0, static_cast<size_t>(got)) !=
                          std::string_view(there.data(), static_cast<size_t>(got))) {
        return false;
      }
      at += static_cast<uint64_t>(got);
      bytes.remove_prefix(static_cast<size_t>(got));
    }
    return true;
  }
  // Creates a new file with the bytes that were equal so far. The old one is unlinked but still
  // open, so that these can be copied from it.
  absl::Status Replace() {
    const int directory = place_.directory.get();
    unlinkat(directory, place_.base.c_str(), 0);
    UniqueFd fd(openat(directory, place_.base.c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kLocalFileMode));
    if (!fd.valid()) return LocalError("create", where_);
    new_.emplace(std::move(fd), where_);
    std::string piece(kCompareBytes, '\0');
    for (uint64_t at = 0; at < bytes_;) {
      const size_t size = std::min<uint64_t>(piece.size(), bytes_ - at);
      const ssize_t got = pread(old_.get(), piece.data(), size, static_cast<off_t>(at));
      if (got <= 0) return Replaced();
      RETURN_IF_ERROR(new_->Write({piece.data(), static_cast<size_t>(got)}));
      at += static_cast<uint64_t>(got);
    }
    return absl::OkStatus();
  }
  absl::Status Replaced() const {
    return Unavailable("{} is also being written by another export; try again", where_);
  }

  const LocalPlace place_;
  const std::string where_;
  UniqueFd old_;
  std::optional<SyncedFile> new_;
  uint64_t bytes_ = 0;
};

}  // namespace

// errno must be that of the failed call, so that no other call may come in between.
absl::Status LocalError(std::string_view what, const std::string& where) {
  const int error = errno;
  const std::string text = fmt::format("cannot {} {}: {}", what, where, std::strerror(error));
  switch (error) {
    case ENOENT:
      return NotFound("{}", text);
    case EEXIST:
      return AlreadyExists("{}", text);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return ResourceExhausted("{}", text);
    // O_NOFOLLOW met a symbolic link.
    case ELOOP:
      return FailedPrecondition("cannot {} {}: it is a symbolic link", what, where);
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG:
      return FailedPrecondition("{}", text);
    default:
      return Unavailable("{}", text);
  }
}

absl::Status LinkError(std::string_view what, const std::string& where) {
  // What file systems without links or renames answer, such as FAT and some FUSE mounts of buckets.
  if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM) {
    return FailedPrecondition(
        "cannot {} {}: {}; if the volume does not support this, pass the root as "
        "--export-root-without-rename",
        what, where, std::strerror(errno));
  }
  return LocalError(what, where);
}

absl::Status WriteAllBytes(int fd, std::string_view bytes, const std::string& where) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return LocalError("write", where);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status SyncDirectoryOf(int directory, const std::string& where) {
  // File systems that cannot sync a directory answer with one of these.
  if (fsync(directory) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EBADF) {
    return absl::OkStatus();
  }
  return LocalError("sync the directory of", where);
}

absl::StatusOr<std::unique_ptr<Volume::File>> MakeRenamedFile(LocalPlace place,
                                                              std::string temporary,
                                                              std::string where) {
  UniqueFd fd(openat(place.directory.get(), temporary.c_str(),
                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kLocalFileMode));
  if (!fd.valid()) return LocalError("create", where);
  return std::make_unique<RenamedFile>(std::move(place), std::move(temporary), std::move(fd),
                                       std::move(where));
}

absl::StatusOr<std::unique_ptr<Volume::File>> MakeInPlaceFile(LocalPlace place, std::string where) {
  auto file = std::make_unique<InPlaceFile>(std::move(place), std::move(where));
  RETURN_IF_ERROR(file->Begin());
  return file;
}

}  // namespace neurontrace
