// SPDX-License-Identifier: Apache-2.0
#include "cli/host_view.h"

#include <dirent.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "lib/base/status.h"
#include "lib/base/unique_fd.h"

namespace neurontrace::cli {
namespace {

// Names in a directory beyond this number are ignored.
constexpr size_t kNamesMax = 100'000;
// The step in which files without a known size are read.
constexpr size_t kReadStepBytes = 64u << 10;

// Returns the status for the current errno, with what was attempted.
absl::Status ErrorOf(const char* what, const std::string& path) {
  const int error = errno;
  const std::string text = fmt::format("cannot {} {}: {}", what, path, strerror(error));
  if (error == ENOENT || error == ENOTDIR || error == ESRCH) return absl::NotFoundError(text);
  if (error == EACCES || error == EPERM) return absl::FailedPreconditionError(text);
  return absl::UnavailableError(text);
}

// Returns the soft limit, the one that the kernel applies.
ResourceLimit LimitOf(__rlimit_resource resource) {
  rlimit limit;
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

}  // namespace

absl::StatusOr<std::string> SystemHostView::Read(const std::string& path, uint64_t offset,
                                                 size_t bytes_max) {
  // O_NONBLOCK keeps the opening of a FIFO from waiting for a writer.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return ErrorOf("read", path);
  std::string bytes;
  while (bytes.size() < bytes_max) {
    const size_t there = bytes.size();
    // Files of /proc report a size of 0, so they are read until their end.
    bytes.resize(there + std::min(kReadStepBytes, bytes_max - there));
    const ssize_t n = pread(fd.get(), bytes.data() + there, bytes.size() - there,
                            static_cast<off_t>(offset + there));
    bytes.resize(there + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrorOf("read", path);
    if (n == 0) break;
  }
  return bytes;
}

std::vector<std::string> SystemHostView::List(const std::string& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open_directory(opendir(directory.c_str()), closedir);
  if (open_directory == nullptr) return names;
  while (const dirent* const entry = readdir(open_directory.get())) {
    if (names.size() == kNamesMax) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  return names;
}

std::optional<PathFacts> SystemHostView::Examine(const std::string& path) {
  struct stat about;
  if (stat(path.c_str(), &about) != 0) return std::nullopt;
  PathFacts facts{.mode = about.st_mode & 07777u, .uid = about.st_uid, .gid = about.st_gid};
  if (S_ISREG(about.st_mode)) facts.kind = PathFacts::Kind::kFile;
  if (S_ISDIR(about.st_mode)) facts.kind = PathFacts::Kind::kDirectory;
  if (S_ISSOCK(about.st_mode)) facts.kind = PathFacts::Kind::kSocket;
  return facts;
}

std::string SystemHostView::RealPath(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), free);
  return real == nullptr ? "" : real.get();
}

bool SystemHostView::CanWrite(const std::string& path) {
  // AT_EACCESS checks with the effective user, as open does; plain access uses the real one.
  return faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
}

absl::StatusOr<uint64_t> SystemHostView::FreeBytes(const std::string& path) {
  struct statvfs about;
  if (statvfs(path.c_str(), &about) != 0) return ErrorOf("look at", path);
  return static_cast<uint64_t>(about.f_bavail) * about.f_frsize;
}

absl::Status SystemHostView::TryToConnect(const std::string& socket_path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof(address.sun_path)) {
    return absl::NotFoundError(socket_path + " is too long for a socket path");
  }
  std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
  // Taps use sockets of packets, so that another type would fail even if an agent listens.
  const UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrorOf("create a socket for", socket_path);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return ErrorOf("connect to", socket_path);
  }
  return absl::OkStatus();
}

uint32_t SystemHostView::user() { return geteuid(); }

std::string SystemHostView::glibc() { return gnu_get_libc_version(); }

std::optional<ClockDiscipline> SystemHostView::discipline() {
  timex state = {};  // no mode: nothing is adjusted
  const int answer = adjtimex(&state);
  if (answer < 0) return std::nullopt;
  // The kernel sets STA_UNSYNC until a daemon clears it. `maxerror` is in microseconds.
  return ClockDiscipline{.synchronised = answer != TIME_ERROR && (state.status & STA_UNSYNC) == 0,
                         .error_max_ns = static_cast<int64_t>(state.maxerror) * 1000};
}

ResourceLimit SystemHostView::locked_bytes_limit() { return LimitOf(RLIMIT_MEMLOCK); }
ResourceLimit SystemHostView::open_files_limit() { return LimitOf(RLIMIT_NOFILE); }

std::string SystemHostView::Environment(const std::string& name) {
  const char* const value = getenv(name.c_str());
  return value == nullptr ? "" : value;
}

}  // namespace neurontrace::cli
