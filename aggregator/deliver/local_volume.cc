// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/local_volume.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "aggregator/deliver/file_time.h"
#include "aggregator/deliver/local_file.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Directories are readable by all, as files are. Temporary files have an ending by which Sweep
// finds them.
constexpr mode_t kDirectoryMode = 0755;
constexpr std::string_view kTemporaryEnding = ".part";

// Opens one part of a path. O_NOFOLLOW together with O_DIRECTORY gives ENOTDIR for a symbolic link.
absl::StatusOr<UniqueFd> OpenPart(int directory, const std::string& part, bool make,
                                  const std::string& where) {
  // Another export may create the same directory at the same time: EEXIST is success.
  if (make && mkdirat(directory, part.c_str(), kDirectoryMode) == 0) {
    RETURN_IF_ERROR(SyncDirectoryOf(directory, where));
  } else if (make && errno != EEXIST) {
    return LocalError("create", where);
  }
  UniqueFd fd(openat(directory, part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.valid()) return fd;
  if (errno == ENOTDIR || errno == ELOOP) {
    return FailedPrecondition("{}: {} is a symbolic link or not a directory", where, part);
  }
  return LocalError("open", where);
}

// Opens the directory `path` part by part. openat2 with RESOLVE_NO_SYMLINKS would do the same in
// one call, but not on older kernels and not together with creating the parts.
absl::StatusOr<UniqueFd> Walk(int top, std::string_view path, bool make, const std::string& where) {
  UniqueFd at(openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!at.valid()) return LocalError("open", where);
  while (!path.empty()) {
    const size_t slash = path.find('/');
    ASSIGN_OR_RETURN(at, OpenPart(at.get(), std::string(path.substr(0, slash)), make, where));
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return at;
}

// Opens the directory of a file, creating it if `make` is set. Fails with INVALID_ARGUMENT for a
// name that IsVolumeName refuses, and with NOT_FOUND if a directory is missing.
absl::StatusOr<LocalPlace> Locate(int top, const std::string& name, bool make,
                                  const std::string& where) {
  if (!IsVolumeName(name)) return InvalidArgument("'{}' is not a valid file name", name);
  const size_t slash = name.rfind('/');
  const bool is_deep = slash != std::string::npos;
  LocalPlace place;
  ASSIGN_OR_RETURN(place.directory,
                   Walk(top, is_deep ? std::string_view(name).substr(0, slash) : "", make, where));
  place.base = is_deep ? name.substr(slash + 1) : name;
  return place;
}

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;
// Opens "." instead of duplicating the descriptor, because a duplicate would share its read
// position.
Directory OpenStream(int fd) {
  UniqueFd own(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  Directory stream(fdopendir(own.get()), closedir);
  if (stream != nullptr) own.release();  // closedir closes it
  return stream;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalVolume>> LocalVolume::Open(Options options) {
  const UniqueFd root(open(options.root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) {
    return FailedPrecondition("the export root {} cannot be opened: {}", options.root,
                              std::strerror(errno));
  }
  if (!options.below.empty() && !IsVolumeName(options.below)) {
    return InvalidArgument("'{}' is not a path below {}", options.below, options.root);
  }
  ASSIGN_OR_RETURN(UniqueFd top, Walk(root.get(), options.below, true,
                                      fmt::format("{}/{}", options.root, options.below)));
  return std::unique_ptr<LocalVolume>(new LocalVolume(std::move(options), std::move(top)));
}

std::string LocalVolume::TemporaryName(const std::string& base) {
  // The base is shortened so that the name stays below the file system's 255 bytes. The mark lets
  // Sweep find what an interrupted delivery of the same capture left.
  return fmt::format(".{}.{}.{}.{}{}", base.substr(0, 100), options_.writer.mark,
                     options_.writer.nonce, files_++, kTemporaryEnding);
}

absl::StatusOr<std::unique_ptr<Volume::File>> LocalVolume::Create(const std::string& name,
                                                                  Resumption) {
  const std::string where = Where(name);
  ASSIGN_OR_RETURN(LocalPlace place, Locate(top_.get(), name, true, where));
  if (!options_.renames) return MakeInPlaceFile(std::move(place), where);
  std::string temporary = TemporaryName(place.base);
  return MakeRenamedFile(std::move(place), std::move(temporary), where);
}

// The content is durable before the name exists, so that nobody finds a half written claim. Without
// rename and links, O_EXCL alone decides, and a claim can be found half written.
absl::Status LocalVolume::CreateOnce(const std::string& name, std::string_view bytes) {
  const std::string where = Where(name);
  ASSIGN_OR_RETURN(const LocalPlace place, Locate(top_.get(), name, true, where));
  const int directory = place.directory.get();
  const std::string temporary = options_.renames ? TemporaryName(place.base) : place.base;
  UniqueFd fd(openat(directory, temporary.c_str(),
                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kLocalFileMode));
  if (!fd.valid()) return LocalError("create", where);
  absl::Status status = WriteAllBytes(fd.get(), bytes, where);
  if (status.ok() && fsync(fd.get()) != 0) status = LocalError("sync", where);
  if (status.ok() && options_.renames) {
    // A second link instead of a rename, which would replace another writer's file: linkat fails
    // with EEXIST, and so decides between two claimants atomically, on NFS as well.
    if (linkat(directory, temporary.c_str(), directory, place.base.c_str(), 0) != 0) {
      status = LinkError("link", where);
    }
  }
  if (options_.renames || !status.ok()) unlinkat(directory, temporary.c_str(), 0);
  return status;
}

// O_NONBLOCK, because opening a FIFO that somebody put there would block for ever.
absl::StatusOr<std::string> LocalVolume::Read(const std::string& name, size_t bytes_max) {
  const std::string where = Where(name);
  ASSIGN_OR_RETURN(const LocalPlace place, Locate(top_.get(), name, false, where));
  const UniqueFd fd(openat(place.directory.get(), place.base.c_str(),
                           O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat about = {};
  if (!fd.valid() || fstat(fd.get(), &about) != 0) return LocalError("read", where);
  if (!S_ISREG(about.st_mode)) return FailedPrecondition("{} is not a regular file", where);
  // One byte more than the file has, to notice its end; it may also grow meanwhile.
  std::string bytes(std::min(bytes_max, static_cast<size_t>(about.st_size)) + 1, '\0');
  size_t have = 0;
  while (have <= bytes_max) {
    if (have == bytes.size()) bytes.resize(std::min(bytes_max + 1, 2 * have));
    const ssize_t got = read(fd.get(), bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return LocalError("read", where);
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  if (have > bytes_max) {
    return MakeStatus(absl::StatusCode::kOutOfRange, "{} is larger than {} bytes", where,
                      bytes_max);
  }
  bytes.resize(have);
  return bytes;
}

absl::StatusOr<uint64_t> LocalVolume::Size(const std::string& name) {
  const std::string where = Where(name);
  ASSIGN_OR_RETURN(const LocalPlace place, Locate(top_.get(), name, false, where));
  struct stat about = {};
  if (fstatat(place.directory.get(), place.base.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) {
    return LocalError("inspect", where);
  }
  if (!S_ISREG(about.st_mode)) return FailedPrecondition("{} is not a regular file", where);
  return static_cast<uint64_t>(about.st_size);
}

absl::StatusOr<std::vector<Volume::Entry>> LocalVolume::List(const std::string& directory,
                                                             size_t entries_max) {
  const std::string where = Where(directory);
  if (!IsVolumeName(directory))
    return InvalidArgument("'{}' is not a valid directory name", directory);
  auto fd = Walk(top_.get(), directory, false, where);
  if (absl::IsNotFound(fd.status())) return std::vector<Entry>();
  RETURN_IF_ERROR(fd.status());
  const Directory stream = OpenStream(fd->get());
  if (stream == nullptr) return LocalError("list", where);
  std::vector<Entry> entries;
  while (const dirent* found = readdir(stream.get())) {
    struct stat about = {};
    if (fstatat(fd->get(), found->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0) continue;  // just gone
    if (!S_ISREG(about.st_mode)) continue;
    if (entries.size() >= entries_max) {
      return ResourceExhausted("{} holds more than {} files", where, entries_max);
    }
    entries.push_back(
        {found->d_name, static_cast<uint64_t>(about.st_size),
         FileTimeNs(about.st_mtim.tv_sec, static_cast<uint64_t>(about.st_mtim.tv_nsec))});
  }
  return entries;
}

// A removal is durable when it returns: a claim that comes back after a crash would block others.
absl::Status LocalVolume::Remove(const std::string& name) {
  const std::string where = Where(name);
  const auto place = Locate(top_.get(), name, false, where);
  if (absl::IsNotFound(place.status())) return absl::OkStatus();
  RETURN_IF_ERROR(place.status());
  if (unlinkat(place->directory.get(), place->base.c_str(), 0) == 0) {
    return SyncDirectoryOf(place->directory.get(), where);
  }
  return errno == ENOENT ? absl::OkStatus() : LocalError("remove", where);
}

void LocalVolume::Sweep(const std::string& directory) {
  if (!IsVolumeName(directory)) return;
  const auto fd = Walk(top_.get(), directory, false, Where(directory));
  if (!fd.ok()) return;
  const Directory stream = OpenStream(fd->get());
  if (stream == nullptr) return;
  // Other captures are delivered into the same directories at the same time: only files with this
  // mark.
  const std::string mark = fmt::format(".{}.", options_.writer.mark);
  while (const dirent* found = readdir(stream.get())) {
    const std::string_view name(found->d_name);
    if (name.starts_with('.') && name.ends_with(kTemporaryEnding) &&
        name.find(mark) != std::string_view::npos) {
      unlinkat(fd->get(), found->d_name, 0);
    }
  }
}

std::string LocalVolume::Where(const std::string& name) const {
  std::string path = options_.root;
  for (const std::string* part : {&options_.below, &name}) {
    if (!part->empty()) path += (path.ends_with('/') ? "" : "/") + *part;
  }
  return path;
}

}  // namespace neurontrace
