// SPDX-License-Identifier: Apache-2.0
#include "lib/base/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/base/unique_fd.h"

namespace neurontrace {
namespace {

// The coarsest clock among common file systems: FAT counts in steps of 2 s.
constexpr uint64_t kTickNs = 2 * kNsPerSecond;

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t bytes_max) {
  // O_NONBLOCK: opening a FIFO that nobody writes would block for ever. Links are followed, as
  // Kubernetes mounts secrets and config maps as links.
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about = {};
  if (!file.valid() || fstat(file.get(), &about) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return NotFound("{}: no such file", path);
    return FailedPrecondition("{} cannot be read: {}", path, std::strerror(errno));
  }
  if (!S_ISREG(about.st_mode)) return FailedPrecondition("{} is not a regular file", path);
  // One byte more than allowed tells a file that is too large, also if it grows while it is read.
  std::string text(bytes_max + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailedPrecondition("{} cannot be read: {}", path, std::strerror(errno));
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (size > bytes_max) return FailedPrecondition("{} is larger than {} bytes", path, bytes_max);
  text.resize(size);
  return text;
}

absl::StatusOr<std::string> ReadTokenFile(const std::string& path, size_t bytes_max) {
  ASSIGN_OR_RETURN(std::string token, ReadSmallFile(path, bytes_max));
  token.erase(token.find_last_not_of(" \t\r\n") + 1);
  if (token.empty()) return FailedPrecondition("{} is empty; it must contain a token", path);
  if (token.find('\n') != std::string::npos) {
    return FailedPrecondition("{} has more than one line; a token is a single line", path);
  }
  // The message never contains any of the token.
  if (std::any_of(token.begin(), token.end(), [](char c) { return c < ' ' || c > '~'; })) {
    return FailedPrecondition(
        "{} has invalid characters; a token is a single line of printable ASCII", path);
  }
  return token;
}

bool FileVersion::WasRecentAt(uint64_t read_realtime_ns) const {
  // A time of change in the future proves nothing about the order of two writes.
  return changed_ns > read_realtime_ns || read_realtime_ns - changed_ns < kTickNs;
}

FileVersion MarkOf(const std::string& path) {
  struct stat about = {};
  if (stat(path.c_str(), &about) != 0) return {};
  return {.device = about.st_dev,
          .inode = about.st_ino,
          .bytes = about.st_size,
          // Times before 1970 and after 2554 wrap around; only equality matters.
          .changed_ns = static_cast<uint64_t>(about.st_mtim.tv_sec) * kNsPerSecond +
                        static_cast<uint64_t>(about.st_mtim.tv_nsec)};
}

}  // namespace neurontrace
