// SPDX-License-Identifier: Apache-2.0
#include "cli/output_place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "lib/base/status.h"
#include "lib/base/unique_fd.h"

namespace neurontrace::cli {
namespace {

// The kernel follows as many links in one path (path_resolution(7)).
constexpr int kLinksMax = 40;

// Returns FAILED_PRECONDITION with the reason.
absl::Status CannotWriteTo(const std::string& path, const std::string& why) {
  return FailedPrecondition("cannot write to {}: {}", path, why);
}

// Returns the directory in which a temporary file would be made.
std::string ParentOfOutput(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent;
}

// Returns whether a link is in the proc file system. Such links contain text for people, "pipe:[7]"
// or "/x (deleted)", and must not be read as paths.
bool IsInProc(const std::string& link) {
  const UniqueFd fd(open(link.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct statfs about = {};
  return fd.valid() && fstatfs(fd.get(), &about) == 0 && about.f_type == PROC_SUPER_MAGIC;
}

// Returns N if `link` is /proc/self/fd/N by any name, such as /dev/stdout; otherwise nullopt.
std::optional<int> OwnDescriptor(const std::string& link) {
  const std::filesystem::path path(link);
  const std::string name = path.filename();
  int number = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  std::error_code failed;
  const std::filesystem::path directory = std::filesystem::canonical(path.parent_path(), failed);
  for (const char* const own : {"/proc/self/fd", "/proc/thread-self/fd"}) {
    if (!failed && directory == std::filesystem::canonical(own, failed)) return number;
  }
  return std::nullopt;
}

// Applies the rule of fs.protected_symlinks, which reading links instead of following them would
// evade. In a world-writable sticky directory a link is followed only if its owner is this user or
// the directory's owner.
bool CanFollow(const std::string& link, const struct stat& about) {
  struct stat directory = {};
  if (stat(ParentOfOutput(link).c_str(), &directory) != 0) return false;
  const bool is_everybodys =
      (directory.st_mode & S_ISVTX) != 0 && (directory.st_mode & S_IWOTH) != 0;
  return !is_everybodys || about.st_uid == geteuid() || about.st_uid == directory.st_uid;
}

// Returns whether another file is mounted on this one, such as a volume of a container: a rename
// cannot replace it.
bool IsMountPoint(const std::string& path) {
  struct statx about = {};
  return statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, 0, &about) == 0 &&
         (about.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0 &&
         (about.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

// Returns the place of an open descriptor. Fails if it is not open for writing.
absl::StatusOr<OutputPlace> PlaceOfDescriptor(const std::string& path, int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0) return CannotWriteTo(path, fmt::format("descriptor {} is not open", descriptor));
  if ((flags & O_ACCMODE) == O_RDONLY) {
    return CannotWriteTo(path, fmt::format("descriptor {} is not open for writing", descriptor));
  }
  return OutputPlace{
      .kind = OutputPlace::Kind::kDescriptor, .path = path, .descriptor = descriptor};
}

// Returns the place of a path that is not a link.
absl::StatusOr<OutputPlace> PlaceOf(const std::string& typed, const std::string& path,
                                    mode_t mode) {
  if (S_ISSOCK(mode)) return CannotWriteTo(typed, "it is a socket");
  if (S_ISBLK(mode))
    return CannotWriteTo(typed, "it is a block device; write to a file on it instead");
  const bool is_replaced = S_ISREG(mode) ? !IsMountPoint(path) : S_ISDIR(mode);
  return OutputPlace{.kind = is_replaced ? OutputPlace::Kind::kNew : OutputPlace::Kind::kStream,
                     .path = path};
}

// Makes `probe` and removes it again. Only an attempt shows whether quotas, read-only mounts and
// access lists allow it.
absl::Status TryToMake(const std::string& path, const std::string& probe, bool is_directory) {
  const UniqueFd fd(
      is_directory ? -1 : open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const bool is_made = is_directory ? mkdir(probe.c_str(), 0700) == 0 : fd.valid();
  if (!is_made && errno == ENAMETOOLONG) {
    return CannotWriteTo(path, fmt::format("its name is too long: the file is first written to "
                                           "NAME.{}.part, and a name has at most {} bytes",
                                           getpid(), NAME_MAX));
  }
  if (!is_made) {
    const std::string why = std::strerror(errno);
    return CannotWriteTo(path, fmt::format("{}: {}", ParentOfOutput(probe), why));
  }
  is_directory ? rmdir(probe.c_str()) : unlink(probe.c_str());
  return absl::OkStatus();
}

// Fails if the kernel would refuse to replace the file by a rename. Passes if nothing exists there.
absl::Status CheckReplacing(const std::string& typed, const std::string& path) {
  struct statx about = {};
  if (statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &about) != 0) {
    // Nothing exists there.
    return absl::OkStatus();
  }
  // Neither kind of file may be renamed over, even by root.
  if ((about.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) != 0) {
    return CannotWriteTo(typed, "it is immutable (lsattr shows its attributes)");
  }
  struct stat parent = {};
  const uid_t user = geteuid();
  const bool is_others = user != 0 && about.stx_uid != user;
  // In a sticky directory only the owner of a file, that of the directory and root may replace it.
  if (is_others && stat(ParentOfOutput(path).c_str(), &parent) == 0 &&
      (parent.st_mode & S_ISVTX) != 0 && parent.st_uid != user) {
    return CannotWriteTo(
        typed,
        fmt::format("it belongs to user {}, and in {} users may not replace files of other users",
                    about.stx_uid, ParentOfOutput(path)));
  }
  return absl::OkStatus();
}

// Checks that a new directory can take the place of `path`: nothing, or an empty directory that can
// be replaced.
absl::Status CheckDirectory(const std::string& typed, std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  std::error_code error;
  const bool is_there = std::filesystem::exists(path, error);
  if (is_there && (!std::filesystem::is_directory(path, error) ||
                   !std::filesystem::is_empty(path, error) || error)) {
    return CannotWriteTo(typed, "it exists and is not an empty directory; choose another");
  }
  if (is_there && IsMountPoint(path)) {
    return CannotWriteTo(typed,
                         "it is a mount point, which cannot be replaced; choose a directory in it");
  }
  RETURN_IF_ERROR(CheckReplacing(typed, path));
  return TryToMake(typed, fmt::format("{}.{}.part", path, getpid()), true);
}

}  // namespace

absl::StatusOr<OutputPlace> FindOutputPlace(const std::string& typed) {
  if (typed == "-") return PlaceOfDescriptor("standard output", STDOUT_FILENO);
  std::string path = typed;
  // Each turn examines one component of a chain of links, with lstat so that no link is followed
  // unexamined.
  for (int links = 0; links <= kLinksMax; ++links) {
    struct stat about = {};
    if (lstat(path.c_str(), &about) != 0) {
      if (errno != ENOENT) return CannotWriteTo(typed, std::strerror(errno));
      // A descriptor that is not open has no entry, and must not become a file in /proc.
      if (const auto descriptor = OwnDescriptor(path)) return PlaceOfDescriptor(typed, *descriptor);
      return OutputPlace{.kind = OutputPlace::Kind::kNew, .path = path};
    }
    if (S_ISREG(about.st_mode) && IsInProc(path)) {
      return CannotWriteTo(typed, "it is a kernel file; choose another");
    }
    if (!S_ISLNK(about.st_mode)) return PlaceOf(typed, path, about.st_mode);
    if (IsInProc(path)) {
      if (const auto descriptor = OwnDescriptor(path)) return PlaceOfDescriptor(typed, *descriptor);
      // The kernel resolves such a link itself, so stat shows its target.
      if (stat(path.c_str(), &about) != 0) return CannotWriteTo(typed, std::strerror(errno));
      ASSIGN_OR_RETURN(OutputPlace place, PlaceOf(typed, path, about.st_mode));
      // The target may have no name any more, so that nothing can be renamed over it.
      if (!S_ISDIR(about.st_mode)) place.kind = OutputPlace::Kind::kStream;
      return place;
    }
    if (!CanFollow(path, about)) {
      return CannotWriteTo(
          typed,
          fmt::format(
              "{} is a symbolic link of user {} in a world-writable directory, and is not followed",
              path, about.st_uid));
    }
    std::error_code error;
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) return CannotWriteTo(typed, error.message());
    // A relative target is relative to the directory of its link.
    path = target.is_absolute() ? target : std::filesystem::path(path).parent_path() / target;
  }
  return CannotWriteTo(typed, std::strerror(ELOOP));
}

bool IsStandardOutput(const std::string& path) {
  const auto place = FindOutputPlace(path);
  return path == "-" || (place.ok() && place->is_standard_output());
}

bool LeadsToFile(const std::string& path) {
  const auto place = FindOutputPlace(path);
  return place.ok() && place->kind == OutputPlace::Kind::kNew;
}

absl::Status CheckOutputPlace(const std::string& path, bool is_directory) {
  ASSIGN_OR_RETURN(const OutputPlace place, FindOutputPlace(path));
  if (is_directory) {
    if (place.kind == OutputPlace::Kind::kNew) return CheckDirectory(path, place.path);
    return InvalidArgument(
        "cannot write to {}: an export of several files needs a directory: -o DIRECTORY", path);
  }
  if (place.kind == OutputPlace::Kind::kDescriptor) return absl::OkStatus();
  if (place.kind == OutputPlace::Kind::kStream) {
    if (faccessat(AT_FDCWD, place.path.c_str(), W_OK, AT_EACCESS) == 0) return absl::OkStatus();
    return CannotWriteTo(path, std::strerror(errno));
  }
  std::error_code error;
  if (path.ends_with('/') || std::filesystem::is_directory(place.path, error)) {
    return CannotWriteTo(path, "it is a directory; choose a file in it");
  }
  RETURN_IF_ERROR(CheckReplacing(path, place.path));
  return TryToMake(path, fmt::format("{}.{}.part", place.path, getpid()), false);
}

}  // namespace neurontrace::cli
