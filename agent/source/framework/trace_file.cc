// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/trace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "base/unique_fd.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

constexpr size_t kInputBytes = 64u << 10;
constexpr int kGzipWindowBits = 15 + 16;  // zlib: largest window, gzip framing only

// Not to hang on a named pipe that somebody put into a watched directory.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

// A descriptor, or -1 with errno; a link is ELOOP, or ENOTDIR where it stands for a directory.
int OpenBelow(const std::string& root, std::string_view name) {
  UniqueFd folder(open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (size_t slash = name.find('/'); folder.valid() && slash != std::string_view::npos;
       slash = name.find('/')) {
    const std::string step(name.substr(0, slash));
    name.remove_prefix(slash + 1);
    folder =
        UniqueFd(openat(folder.get(), step.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  if (!folder.valid()) return -1;
  return openat(folder.get(), std::string(name).c_str(), kOpenFlags | O_NOFOLLOW);
}

}  // namespace

struct TraceFile::Impl {
  std::string path;
  int fd = -1;
  bool gzip = false;
  bool inflating = false;   // inflateInit2 was called
  bool member_done = true;  // between two gzip members
  bool members = false;     // at least one gzip member is complete
  z_stream zlib{};
  std::unique_ptr<unsigned char[]> input = std::make_unique<unsigned char[]>(kInputBytes);
  uint64_t bytes_out = 0;

  ~Impl() {
    if (inflating) inflateEnd(&zlib);
    if (fd >= 0) close(fd);
  }

  // More compressed or plain bytes into zlib.next_in; false at the end of the file.
  absl::StatusOr<bool> Fill() {
    ssize_t n;
    do {
      n = read(fd, input.get(), kInputBytes);
    } while (n < 0 && errno == EINTR);
    if (n < 0) return Unavailable("{}: cannot read: {}", path, strerror(errno));
    zlib.next_in = input.get();
    zlib.avail_in = static_cast<uInt>(n);
    return n > 0;
  }

  absl::StatusOr<std::optional<size_t>> ReadPlain(char* out, size_t size) {
    if (zlib.avail_in == 0) {
      ASSIGN_OR_RETURN(const bool more, Fill());
      if (!more) return 0;
    }
    const size_t n = std::min<size_t>(size, zlib.avail_in);
    memcpy(out, zlib.next_in, n);
    zlib.next_in += n;
    zlib.avail_in -= static_cast<uInt>(n);
    return n;
  }

  absl::StatusOr<std::optional<size_t>> ReadGzip(char* out, size_t size) {
    zlib.next_out = reinterpret_cast<unsigned char*>(out);
    zlib.avail_out = static_cast<uInt>(size);
    bool filled = false;
    while (zlib.avail_out == size) {
      if (zlib.avail_in == 0) {
        // Members and blocks may be empty, any number in a row.
        if (std::exchange(filled, true)) return std::nullopt;
        ASSIGN_OR_RETURN(const bool more, Fill());
        if (!more) {
          if (member_done) return 0;
          return DataLoss("{}: the gzip data ends early", path);
        }
      }
      if (member_done) {
        inflateReset(&zlib);
        member_done = false;
      }
      const int result = inflate(&zlib, Z_NO_FLUSH);
      if (result == Z_STREAM_END) {
        member_done = true;
        members = true;
      } else if (result == Z_DATA_ERROR && members && zlib.total_out == 0) {
        return 0;  // What follows a complete member is no gzip: ignored as gzip(1) does.
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        return DataLoss("{}: broken gzip data: {}", path, zlib.msg != nullptr ? zlib.msg : "?");
      }
    }
    return size - zlib.avail_out;
  }
};

absl::StatusOr<TraceFile> TraceFile::Open(const std::string& path, const std::string& root) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->fd = root.empty() ? open(path.c_str(), kOpenFlags)
                          : OpenBelow(root, std::string_view(path).substr(root.size() + 1));
  if (impl->fd < 0) {
    if (errno == ENOENT) return NotFound("{}: no such file", path);
    if (!root.empty() && (errno == ELOOP || errno == ENOTDIR)) {
      return InvalidArgument(
          "{}: a symbolic link below {}, which is not followed: put the file itself there", path,
          root);
    }
    return Unavailable("{}: cannot open: {}", path, strerror(errno));
  }
  struct stat status {};
  if (fstat(impl->fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    return InvalidArgument("{}: is not a regular file", path);
  }
  ASSIGN_OR_RETURN(const bool any, impl->Fill());
  impl->gzip = any && impl->zlib.avail_in >= 2 && impl->input[0] == 0x1f && impl->input[1] == 0x8b;
  if (impl->gzip) {
    if (inflateInit2(&impl->zlib, kGzipWindowBits) != Z_OK) {
      return ResourceExhausted("{}: zlib cannot start", path);
    }
    impl->inflating = true;
  }
  return TraceFile(std::move(impl));
}

TraceFile::TraceFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TraceFile::TraceFile(TraceFile&&) noexcept = default;
TraceFile& TraceFile::operator=(TraceFile&&) noexcept = default;
TraceFile::~TraceFile() = default;

absl::StatusOr<std::optional<size_t>> TraceFile::Read(char* out, size_t size) {
  if (impl_->bytes_out > limits::kFrameworkFileBytesMax) {
    return ResourceExhausted("{}: more than {} bytes, the rest is not read", impl_->path,
                             limits::kFrameworkFileBytesMax);
  }
  auto n = impl_->gzip ? impl_->ReadGzip(out, size) : impl_->ReadPlain(out, size);
  if (n.ok()) impl_->bytes_out += n->value_or(0);
  return n;
}

}  // namespace neurontrace
