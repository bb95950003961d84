// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/xla/xspace_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "lib/base/status.h"
#include "lib/base/unique_fd.h"

namespace neurontrace {
namespace {

constexpr mode_t kFolderMode = 0750;
constexpr mode_t kFileMode = 0640;

// Requires a failed system call, whose errno it describes.
absl::Status DiskError(const char* operation, const std::string& path) {
  const int error = errno;
  const auto code = error == EEXIST ? absl::StatusCode::kAlreadyExists
                    : error == ENOSPC || error == EDQUOT || error == EFBIG
                        ? absl::StatusCode::kResourceExhausted
                        : absl::StatusCode::kUnavailable;
  return MakeStatus(code, "{} {}: {}", operation, path, std::strerror(error));
}

absl::Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return DiskError("write", path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SaveXSpace(const std::string& directory, const std::string& session,
                        const std::string& host, std::string_view bytes) {
  const std::string folder_path = directory + "/" + session;
  const UniqueFd parent(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent.valid()) return DiskError("open", directory);
  if (mkdirat(parent.get(), session.c_str(), kFolderMode) != 0) {
    return DiskError("make", folder_path);
  }
  const UniqueFd folder(
      openat(parent.get(), session.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid()) return DiskError("open", folder_path);
  struct stat status {};
  // Whoever may write to the directory could have put another folder in its place.
  if (fstat(folder.get(), &status) != 0) return DiskError("examine", folder_path);
  if (status.st_uid != geteuid()) {
    return Unavailable("{} was replaced by a folder of user {}", folder_path, status.st_uid);
  }
  const std::string name = host + ".xplane.pb";
  const std::string partial = name + ".tmp";
  const UniqueFd file(openat(folder.get(), partial.c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  if (!file.valid()) return DiskError("create", folder_path + "/" + partial);
  absl::Status written = WriteAll(file.get(), bytes, folder_path + "/" + partial);
  if (written.ok() && renameat(folder.get(), partial.c_str(), folder.get(), name.c_str()) != 0) {
    written = DiskError("rename", folder_path + "/" + partial);
  }
  if (!written.ok()) unlinkat(folder.get(), partial.c_str(), 0);
  return written;
}

}  // namespace neurontrace
