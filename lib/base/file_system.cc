// SPDX-License-Identifier: Apache-2.0
#include "lib/base/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "lib/base/status.h"
#include "lib/base/unique_fd.h"

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

// Spools and stores hold what workers traced; other users of a shared node must not read it.
constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;

// Callers branch on the code: RESOURCE_EXHAUSTED starts the policy of a full disk,
// FAILED_PRECONDITION is for an operator to fix, and UNAVAILABLE is tried again.
absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::StatusCode::kNotFound;
    case EEXIST:
    case ENOTEMPTY:
      return absl::StatusCode::kAlreadyExists;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::StatusCode::kResourceExhausted;
    case EROFS:
    case EACCES:
    case EPERM:
    case EWOULDBLOCK:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

// Returns the error of a system call, by default the one that has just failed.
absl::Status ErrorOf(const char* operation, const std::string& path, int error = errno) {
  return MakeStatus(CodeOf(error), "cannot {} {}: {}", operation, path,
                    std::generic_category().message(error));
}

class SystemFile final : public FileSystem::File {
 public:
  SystemFile(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  absl::Status Append(std::string_view bytes) override {
    // write(2) may write a part, on a disk that fills up or at a signal.
    while (!bytes.empty()) {
      const ssize_t written = write(fd_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return ErrorOf("write", path_);
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    // fdatasync includes the file's size, which is all that a reader needs, and saves writing the
    // times.
    return fdatasync(fd_.get()) == 0 ? absl::OkStatus() : ErrorOf("sync", path_);
  }

  absl::StatusOr<std::string> Read(uint64_t offset, size_t bytes_max) override {
    // Allocates no more than the file has: `bytes_max` may be a length that was read from a damaged
    // file.
    ASSIGN_OR_RETURN(const uint64_t size, Size());
    const uint64_t there = size - std::min(size, offset);
    std::string bytes(static_cast<size_t>(std::min<uint64_t>(there, bytes_max)), '\0');
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t got = pread(fd_.get(), bytes.data() + done, bytes.size() - done,
                                static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrorOf("read", path_);
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    bytes.resize(done);
    return bytes;
  }

  absl::StatusOr<uint64_t> Size() override {
    struct stat info {};
    if (fstat(fd_.get(), &info) != 0) return ErrorOf("examine", path_);
    return static_cast<uint64_t>(info.st_size);
  }

 private:
  const UniqueFd fd_;
  const std::string path_;
};

class SystemLock final : public FileSystem::Lock {
 public:
  explicit SystemLock(UniqueFd fd) : fd_(std::move(fd)) {}

 private:
  const UniqueFd fd_;  // flock(2) ends with it
};

// Opens a regular file and nothing else. A user who may write to the directory could put a FIFO
// there, which would block for ever without O_NONBLOCK, or a link to another file, which O_NOFOLLOW
// refuses. O_NOCTTY keeps a terminal from becoming the daemon's controlling one.
absl::StatusOr<UniqueFd> Open(const char* operation, const std::string& path, int flags) {
  constexpr int kAlways = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  UniqueFd fd(open(path.c_str(), flags | kAlways, kFileMode));
  // ELOOP: a link, by O_NOFOLLOW. ENXIO: a socket, or a FIFO that nobody reads.
  const bool is_other = !fd.valid() && (errno == ELOOP || errno == ENXIO);
  if (!fd.valid() && !is_other) return ErrorOf(operation, path);
  struct stat about {};
  if (!is_other && fstat(fd.get(), &about) != 0) return ErrorOf("examine", path);
  if (is_other || !S_ISREG(about.st_mode)) {
    return DataLoss(
        "cannot {} {}: it is a link, FIFO, socket, device or directory, not a regular file; remove "
        "it",
        operation, path);
  }
  return fd;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileSystem::File>> UnsyncedFileSystem::Create(
    const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, files_.Create(path));
  return std::make_unique<UnsyncedFile>(std::move(file));
}

absl::StatusOr<std::unique_ptr<FileSystem::File>> SystemFileSystem::Create(
    const std::string& path) {
  ASSIGN_OR_RETURN(UniqueFd fd, Open("create", path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND));
  return std::make_unique<SystemFile>(std::move(fd), path);
}

absl::StatusOr<std::unique_ptr<FileSystem::File>> SystemFileSystem::OpenForReading(
    const std::string& path) {
  ASSIGN_OR_RETURN(UniqueFd fd, Open("open", path, O_RDONLY));
  return std::make_unique<SystemFile>(std::move(fd), path);
}

absl::StatusOr<std::vector<FileSystem::Entry>> SystemFileSystem::List(const std::string& directory,
                                                                      size_t entries_max) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(directory.c_str()), &closedir);
  if (stream == nullptr) return ErrorOf("list", directory);
  std::vector<Entry> entries;
  for (;;) {
    // readdir returns null at the end and on an error alike; only errno tells them apart.
    errno = 0;
    const dirent* const found = readdir(stream.get());
    if (found == nullptr) break;
    Entry entry{.name = found->d_name};
    if (entry.name == "." || entry.name == "..") continue;
    if (entries.size() >= entries_max) {
      return ResourceExhausted("{} has more than {} entries", directory, entries_max);
    }
    struct stat info {};
    if (fstatat(dirfd(stream.get()), found->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;  // removed since
      return ErrorOf("examine", directory + "/" + entry.name);
    }
    entry.is_directory = S_ISDIR(info.st_mode);
    entry.bytes = entry.is_directory ? 0 : static_cast<uint64_t>(info.st_size);
    entries.push_back(std::move(entry));
  }
  if (errno != 0) return ErrorOf("list", directory);
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

// Makes the parents from the root down. The loop ends at the path itself, which has no further
// slash.
absl::Status SystemFileSystem::MakeDirectory(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    struct stat info {};
    // EEXIST from mkdir is no error: another process may make the same directory between the two
    // calls.
    const bool there = stat(part.c_str(), &info) == 0;
    if (there && !S_ISDIR(info.st_mode)) return ErrorOf("create directory", part, ENOTDIR);
    if (!there && mkdir(part.c_str(), kDirectoryMode) != 0 && errno != EEXIST) {
      return ErrorOf("create directory", part);
    }
    if (end == std::string::npos) return absl::OkStatus();
  }
}

absl::Status SystemFileSystem::Rename(const std::string& from, const std::string& to) {
  return rename(from.c_str(), to.c_str()) == 0 ? absl::OkStatus() : ErrorOf("rename", from);
}

absl::Status SystemFileSystem::Remove(const std::string& path) {
  return remove(path.c_str()) == 0 ? absl::OkStatus() : ErrorOf("remove", path);
}

absl::Status SystemFileSystem::SyncDirectory(const std::string& directory) {
  // Follows links, unlike Open: the spool's root may be a link, for example to a larger disk.
  const UniqueFd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrorOf("open", directory);
  return fsync(fd.get()) == 0 ? absl::OkStatus() : ErrorOf("sync", directory);
}

absl::StatusOr<std::unique_ptr<FileSystem::Lock>> SystemFileSystem::TakeLock(
    const std::string& path) {
  // flock needs no write access: on a file system that has become read-only an existing lock file
  // is enough.
  absl::StatusOr<UniqueFd> opened = Open("create", path, O_RDWR | O_CREAT);
  if (!opened.ok()) {
    auto existing = Open("open", path, O_RDONLY);
    if (existing.ok()) opened = std::move(existing);
  }
  ASSIGN_OR_RETURN(UniqueFd fd, std::move(opened));
  // flock rather than fcntl: fcntl's locks belong to the process and are released when any
  // descriptor of the file is closed.
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return FailedPrecondition("{} is locked by another process", path);
    return ErrorOf("lock", path);
  }
  return std::make_unique<SystemLock>(std::move(fd));
}

absl::StatusOr<FileSystem::Capacity> SystemFileSystem::CapacityOf(const std::string& directory) {
  struct statvfs facts {};
  if (statvfs(directory.c_str(), &facts) != 0) return ErrorOf("read the free space of", directory);
  return Capacity{.total_bytes = uint64_t{facts.f_blocks} * facts.f_frsize,
                  .free_bytes = uint64_t{facts.f_bavail} * facts.f_frsize};
}

}  // namespace neurontrace
