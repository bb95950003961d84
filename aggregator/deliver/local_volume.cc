// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/local_volume.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace neurontrace {
namespace {

constexpr mode_t kDirectoryMode = 0755;
constexpr mode_t kFileMode = 0644;
constexpr std::string_view kTemporaryEnding = ".part";

absl::Status VolumeError(std::string_view what, const std::string& where) {
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
    case ELOOP:
      return FailedPrecondition("cannot {} {}: a symbolic link is in its place", what, where);
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

// O_NOFOLLOW with O_DIRECTORY says ENOTDIR of a symbolic link.
absl::StatusOr<UniqueFd> OpenPart(int directory, const std::string& part, bool make,
                                  const std::string& where) {
  if (make && mkdirat(directory, part.c_str(), kDirectoryMode) != 0 && errno != EEXIST) {
    return VolumeError("make", where);
  }
  UniqueFd fd(openat(directory, part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.valid()) return fd;
  if (errno == ENOTDIR || errno == ELOOP) {
    return FailedPrecondition("{}: {} is no directory, or a symbolic link", where, part);
  }
  return VolumeError("open", where);
}

// The directory `path`, part by part.
absl::StatusOr<UniqueFd> Walk(int top, std::string_view path, bool make, const std::string& where) {
  UniqueFd at(openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!at.valid()) return VolumeError("open", where);
  while (!path.empty()) {
    const size_t slash = path.find('/');
    ASSIGN_OR_RETURN(at, OpenPart(at.get(), std::string(path.substr(0, slash)), make, where));
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return at;
}

struct Place {
  UniqueFd directory;
  std::string base;
};

absl::StatusOr<Place> Locate(int top, const std::string& name, bool make,
                             const std::string& where) {
  if (!IsVolumeName(name)) return InvalidArgument("'{}' is no name of a file", name);
  const size_t slash = name.rfind('/');
  const bool is_deep = slash != std::string::npos;
  Place place;
  ASSIGN_OR_RETURN(place.directory,
                   Walk(top, is_deep ? std::string_view(name).substr(0, slash) : "", make, where));
  place.base = is_deep ? name.substr(slash + 1) : name;
  return place;
}

absl::Status WriteAll(int fd, std::string_view bytes, const std::string& where) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return VolumeError("write", where);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

// Some volumes have no sync of directories; what they take is as durable as they make it.
absl::Status SyncParent(int directory, const std::string& where) {
  if (fsync(directory) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EBADF) {
    return absl::OkStatus();
  }
  return VolumeError("sync the directory of", where);
}

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;
Directory OpenStream(int fd) {
  return {fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), closedir};
}

class LocalFile : public Volume::File {
 public:
  // `temporary` is where it is written; the name itself where the volume cannot rename.
  LocalFile(Place place, std::string temporary, UniqueFd fd, std::string where)
      : place_(std::move(place)),
        temporary_(std::move(temporary)),
        fd_(std::move(fd)),
        where_(std::move(where)) {}
  ~LocalFile() override {
    if (!is_whole_) unlinkat(place_.directory.get(), temporary_.c_str(), 0);
  }

  absl::Status Write(std::string_view bytes) override { return WriteAll(fd_.get(), bytes, where_); }

  absl::Status Commit() override {
    if (fsync(fd_.get()) != 0) return VolumeError("sync", where_);
    if (close(fd_.release()) != 0) return VolumeError("close", where_);  // NFS says it here
    const int directory = place_.directory.get();
    if (temporary_ != place_.base &&
        renameat(directory, temporary_.c_str(), directory, place_.base.c_str()) != 0) {
      if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) {
        return FailedPrecondition(
            "{} cannot be renamed there: give the root with --export-root-without-rename", where_);
      }
      return VolumeError("rename", where_);
    }
    is_whole_ = true;
    return SyncParent(directory, where_);
  }

 private:
  const Place place_;
  const std::string temporary_;
  UniqueFd fd_;
  const std::string where_;
  bool is_whole_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LocalVolume>> LocalVolume::Open(Options options) {
  const UniqueFd root(open(options.root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) {
    return FailedPrecondition("the export root {} cannot be opened: {}", options.root,
                              std::strerror(errno));
  }
  if (!options.below.empty() && !IsVolumeName(options.below)) {
    return InvalidArgument("'{}' is no path below {}", options.below, options.root);
  }
  ASSIGN_OR_RETURN(UniqueFd top, Walk(root.get(), options.below, true,
                                      fmt::format("{}/{}", options.root, options.below)));
  return std::unique_ptr<LocalVolume>(new LocalVolume(std::move(options), std::move(top)));
}

std::string LocalVolume::TemporaryName(const std::string& base) {
  // As short as a name can be, however long the file's own is.
  return fmt::format(".{}.{}.{}{}", base.substr(0, 100), options_.nonce, files_++,
                     kTemporaryEnding);
}

absl::StatusOr<std::unique_ptr<Volume::File>> LocalVolume::Create(const std::string& name,
                                                                  Resumption) {
  const std::string where = Where(name);
  ASSIGN_OR_RETURN(Place place, Locate(top_.get(), name, true, where));
  std::string temporary = options_.renames ? TemporaryName(place.base) : place.base;
  const int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
  if (!options_.renames) unlinkat(place.directory.get(), temporary.c_str(), 0);
  UniqueFd fd(openat(place.directory.get(), temporary.c_str(), flags | O_EXCL, kFileMode));
  if (!fd.valid()) return VolumeError("make", where);
  return std::make_unique<LocalFile>(std::move(place), std::move(temporary), std::move(fd), where);
}

absl::Status LocalVolume::CreateOnce(const std::string& name, std::string_view bytes) {
  const std::string where = Where(name);
  ASSIGN_OR_RETURN(const Place place, Locate(top_.get(), name, true, where));
  const int directory = place.directory.get();
  const std::string temporary = options_.renames ? TemporaryName(place.base) : place.base;
  UniqueFd fd(openat(directory, temporary.c_str(),
                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  if (!fd.valid()) return VolumeError("make", where);
  absl::Status status = WriteAll(fd.get(), bytes, where);
  if (status.ok() && fsync(fd.get()) != 0) status = VolumeError("sync", where);
  if (status.ok() && options_.renames) {
    // A second name, and not a rename, which would take the place of another's file.
    if (linkat(directory, temporary.c_str(), directory, place.base.c_str(), 0) != 0) {
      status = VolumeError("make", where);
    }
  }
  if (options_.renames || !status.ok()) unlinkat(directory, temporary.c_str(), 0);
  return status;
}

absl::StatusOr<std::string> LocalVolume::Read(const std::string& name, size_t bytes_max) {
  const std::string where = Where(name);
  ASSIGN_OR_RETURN(const Place place, Locate(top_.get(), name, false, where));
  const UniqueFd fd(openat(place.directory.get(), place.base.c_str(),
                           O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat about = {};
  if (!fd.valid() || fstat(fd.get(), &about) != 0) return VolumeError("read", where);
  if (!S_ISREG(about.st_mode)) return FailedPrecondition("{} is no file", where);
  std::string bytes(bytes_max + 1, '\0');
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = read(fd.get(), bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return VolumeError("read", where);
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
  ASSIGN_OR_RETURN(const Place place, Locate(top_.get(), name, false, where));
  struct stat about = {};
  if (fstatat(place.directory.get(), place.base.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) {
    return VolumeError("look at", where);
  }
  if (!S_ISREG(about.st_mode)) return FailedPrecondition("{} is no file", where);
  return static_cast<uint64_t>(about.st_size);
}

absl::StatusOr<std::vector<Volume::Entry>> LocalVolume::List(const std::string& directory,
                                                             size_t entries_max) {
  const std::string where = Where(directory);
  if (!IsVolumeName(directory)) return InvalidArgument("'{}' is no directory", directory);
  auto fd = Walk(top_.get(), directory, false, where);
  if (absl::IsNotFound(fd.status())) return std::vector<Entry>();
  RETURN_IF_ERROR(fd.status());
  const Directory stream = OpenStream(fd->get());
  if (stream == nullptr) return VolumeError("list", where);
  std::vector<Entry> entries;
  while (const dirent* found = readdir(stream.get())) {
    struct stat about = {};
    if (fstatat(fd->get(), found->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0) continue;  // just gone
    if (!S_ISREG(about.st_mode)) continue;
    if (entries.size() >= entries_max) {
      return ResourceExhausted("{} holds more than {} files", where, entries_max);
    }
    entries.push_back({found->d_name, static_cast<uint64_t>(about.st_size),
                       static_cast<uint64_t>(about.st_mtim.tv_sec) * 1'000'000'000 +
                           static_cast<uint64_t>(about.st_mtim.tv_nsec)});
  }
  return entries;
}

absl::Status LocalVolume::Remove(const std::string& name) {
  const std::string where = Where(name);
  const auto place = Locate(top_.get(), name, false, where);
  if (absl::IsNotFound(place.status())) return absl::OkStatus();
  RETURN_IF_ERROR(place.status());
  if (unlinkat(place->directory.get(), place->base.c_str(), 0) == 0 || errno == ENOENT) {
    return absl::OkStatus();
  }
  return VolumeError("remove", where);
}

void LocalVolume::Sweep(const std::string& directory) {
  if (!IsVolumeName(directory)) return;
  const auto fd = Walk(top_.get(), directory, false, Where(directory));
  if (!fd.ok()) return;
  const Directory stream = OpenStream(fd->get());
  if (stream == nullptr) return;
  while (const dirent* found = readdir(stream.get())) {
    const std::string_view name(found->d_name);
    if (name.starts_with('.') && name.ends_with(kTemporaryEnding)) {
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
