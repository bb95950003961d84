// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/trace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/source/framework/xspace_scan.h"
#include "lib/base/clean_text.h"
#include "lib/base/sha256.h"
#include "lib/base/status.h"
#include "lib/base/unique_fd.h"
#include "lib/trace/limits.h"

// Every read is followed by fstat(2): bytes count only if the file still has the state in which it
// was opened. So each reading sees one version of the content, without locking the file.
namespace neurontrace {
namespace {

// Bytes that are read from the file at once.
constexpr size_t kInputBytes = 64u << 10;
constexpr int kGzipWindowBits = 15 + 16;  // zlib: largest window, gzip framing only
constexpr std::string_view kGzipMagic = "\x1f\x8b";

// O_NONBLOCK, because open(2) of a named pipe in a watched directory would otherwise hang.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

// Opens `name` below `root` step by step without following links. Returns a descriptor, or -1 with
// errno: ELOOP for a link, or ENOTDIR where the link takes the place of a directory. openat2(2)
// with RESOLVE_NO_SYMLINKS would do this in one call, but needs Linux 5.6.
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

// Returns the time in ns since the epoch.
uint64_t NsOf(const timespec& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// See TraceFile::ContentMark.
uint64_t MarkOf(Sha256& hash) {
  const std::string digest = hash.Finish();
  uint64_t mark = 0;
  memcpy(&mark, digest.data(), sizeof(mark));
  return mark | 1;
}

// Skips the blanks and the byte order mark before the first character of JSON.
std::string_view SkipBlanks(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

// Finds a key of the outermost object or of an element. The value is not examined, as it may lie
// behind the bytes at hand.
bool HasKey(std::string_view text, std::string_view quoted_key) {
  for (size_t at = text.find(quoted_key); at != std::string_view::npos;
       at = text.find(quoted_key, at + 1)) {
    const std::string_view behind = SkipBlanks(text.substr(at + quoted_key.size()));
    if (behind.empty() || behind.front() == ':') return true;
  }
  return false;
}

// First bytes of other kinds of files, for messages only.
struct Magic {
  std::string_view begins;
  std::string_view what;
};
constexpr Magic kMagics[] = {
    {kGzipMagic, "gzip data inside gzip data; decompress it once"},
    {"\x28\xb5\x2f\xfd", "zstd data"},
    {"PK\x03\x04", "a zip archive"},
    {"\xfd"
     "7zXZ",
     "xz data"},
    {"BZh", "bzip2 data"},
    {"SQLite format 3", "an SQLite database"},
    {"\xff\xfe", "text in UTF-16; convert it to UTF-8"},
    {"\xfe\xff", "text in UTF-16; convert it to UTF-8"},
    {"<", "HTML or XML"},
};

}  // namespace

FileState StateOf(const struct stat& status) {
  return {.bytes = static_cast<uint64_t>(status.st_size),
          .modified_ns = NsOf(status.st_mtim),
          .changed_ns = NsOf(status.st_ctim),
          .device = status.st_dev,
          .inode = status.st_ino};
}

ContentKind DetectContent(std::string_view first_bytes) {
  if (first_bytes.starts_with(kGzipMagic)) return ContentKind::kGzip;
  const std::string_view text = SkipBlanks(first_bytes);
  if (text.starts_with('{') || text.starts_with('[')) {
    if (HasKey(text, "\"nrta_seq_id\"")) return ContentKind::kMapping;
    const bool is_trace = HasKey(text, "\"traceEvents\"") || HasKey(text, "\"ph\"");
    return is_trace ? ContentKind::kTraceEventJson : ContentKind::kUnknown;
  }
  // The size of the file is not known here; the reader finds out whether the planes fit into it.
  if (LooksLikeXSpace(first_bytes, UINT64_MAX)) return ContentKind::kXSpace;
  return ContentKind::kUnknown;
}

std::string DescribeContent(std::string_view first_bytes) {
  if (first_bytes.empty()) return "empty";
  for (const Magic& magic : kMagics) {
    if (first_bytes.starts_with(magic.begins)) return std::string(magic.what);
  }
  const std::string_view text = SkipBlanks(first_bytes);
  if (text.empty()) return "blank";
  if (text.front() == '{' || text.front() == '[') return "JSON without trace events";
  constexpr size_t kShownMax = 16;
  return fmt::format("not JSON: it begins with \"{}\"",
                     CleanText(text.substr(0, kShownMax), kShownMax));
}

// The state of one reading. The descriptor is shared by all readings of the file.
struct TraceFile::Impl {
  std::string path;
  std::shared_ptr<const UniqueFd> fd;
  FileState state;      // expected
  uint64_t end = 0;     // bytes of the file when it was opened
  uint64_t offset = 0;  // of the next bytes to read from the file
  bool gzip = false;
  bool inflating = false;   // inflateInit2 was called
  bool member_done = true;  // between two gzip members
  bool members = false;     // at least one gzip member is complete
  absl::Status broken;      // what comes after the bytes that were given out
  z_stream zlib{};
  std::unique_ptr<unsigned char[]> input = std::make_unique<unsigned char[]>(kInputBytes);
  uint64_t bytes_out = 0;
  Sha256 hash;
  uint64_t prefix_bytes = 0;
  uint64_t prefix_mark = 0;
  std::optional<Sha256> prefix_hash;  // while the prefix is being read
  bool prefix_matches = false;

  ~Impl() {
    if (inflating) inflateEnd(&zlib);
  }

  // Reads bytes of the file itself. Fails with ABORTED if the file is not in the expected state.
  absl::StatusOr<size_t> ReadAt(uint64_t at, char* out, size_t size) const {
    // Bytes that were appended after the file was opened are not read.
    size = at >= end ? 0 : std::min<uint64_t>(size, end - at);
    ssize_t n = 0;
    do {
      n = size == 0 ? 0 : pread(fd->get(), out, size, static_cast<off_t>(at));
    } while (n < 0 && errno == EINTR);
    if (n < 0) return Unavailable("{}: cannot read: {}", path, strerror(errno));
    // Checked after reading: what was read before the file was found unchanged is what it held when
    // it was opened.
    struct stat now {};
    if (fstat(fd->get(), &now) != 0) return Unavailable("{}: fstat: {}", path, strerror(errno));
    if (StateOf(now) != state) return Aborted("{}: it changed while it was read", path);
    return static_cast<size_t>(n);
  }

  // Reads more bytes of the file into zlib.next_in; returns false at the end of the file as it was
  // opened.
  absl::StatusOr<bool> Fill() {
    ASSIGN_OR_RETURN(const size_t n,
                     ReadAt(offset, reinterpret_cast<char*>(input.get()), kInputBytes));
    offset += n;
    zlib.next_in = input.get();
    zlib.avail_in = static_cast<uInt>(n);
    return n > 0;
  }

  // Reads the first bytes and decides whether the file is gzip.
  absl::Status Begin() {
    ASSIGN_OR_RETURN(const bool any, Fill());
    const std::string_view bytes(reinterpret_cast<const char*>(input.get()), zlib.avail_in);
    // By content, as files are renamed and compressed by people and schedulers.
    gzip = any && bytes.starts_with(kGzipMagic);
    if (!gzip) return absl::OkStatus();
    if (inflateInit2(&zlib, kGzipWindowBits) != Z_OK) {
      return ResourceExhausted("{}: cannot initialise zlib", path);
    }
    inflating = true;
    return absl::OkStatus();
  }

  // Returns bytes of a file that is not compressed.
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

  // Decompresses until there is output or the input that was read is used up. At most one read of
  // the file in each call bounds the work.
  absl::StatusOr<std::optional<size_t>> ReadGzip(char* out, size_t size) {
    if (!broken.ok()) return broken;
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
          return DataLoss("the gzip data is truncated");
        }
      }
      // The next member of a concatenated file (RFC 1952, section 2.2).
      if (member_done) {
        inflateReset(&zlib);
        member_done = false;
      }
      // Z_BUF_ERROR means that more input is needed, which the loop provides.
      const int result = inflate(&zlib, Z_NO_FLUSH);
      if (result == Z_STREAM_END) {
        member_done = true;
        members = true;
      } else if (result == Z_DATA_ERROR && members && zlib.total_out == 0) {
        return 0;  // What follows a complete member is no gzip: ignored as gzip(1) does.
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        // What was decompressed before the damage, or before a wrong checksum at the end, is valid
        // and is returned first; the error follows with the next call.
        broken = DataLoss("the gzip data is damaged: {}", zlib.msg != nullptr ? zlib.msg : "?");
        if (zlib.avail_out == size) return broken;
        break;
      }
    }
    return size - zlib.avail_out;
  }

  // Adds bytes that were given out to the digests of the content and of the watched prefix.
  void Account(std::string_view bytes) {
    hash.Update(bytes);
    if (prefix_hash) {
      prefix_hash->Update(bytes.substr(0, std::min(bytes.size(), prefix_bytes - bytes_out)));
      if (bytes_out + bytes.size() >= prefix_bytes) {
        prefix_matches = MarkOf(*prefix_hash) == prefix_mark;
        prefix_hash.reset();
      }
    }
    bytes_out += bytes.size();
  }
};

absl::StatusOr<TraceFile> TraceFile::Open(const std::string& path, const std::string& root) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  // The descriptor is examined after it is open: a name could be replaced in between.
  UniqueFd fd(root.empty() ? open(path.c_str(), kOpenFlags)
                           : OpenBelow(root, std::string_view(path).substr(root.size() + 1)));
  if (!fd.valid()) {
    if (errno == ENOENT) return NotFound("{}: no such file", path);
    if (!root.empty() && (errno == ELOOP || errno == ENOTDIR)) {
      return InvalidArgument(
          "{}: symbolic links below {} are not followed; put the file itself there", path, root);
    }
    return Unavailable("{}: cannot open: {}", path, strerror(errno));
  }
  struct stat status {};
  if (fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return InvalidArgument("{}: not a regular file", path);
  }
  impl->fd = std::make_shared<const UniqueFd>(std::move(fd));
  impl->state = StateOf(status);
  impl->end = impl->state.bytes;
  RETURN_IF_ERROR(impl->Begin());
  return TraceFile(std::move(impl));
}

absl::StatusOr<TraceFile> TraceFile::Reread(bool as_it_is_now) const {
  auto impl = std::make_unique<Impl>();
  impl->path = impl_->path;
  // The same open file, whatever the path refers to by now.
  impl->fd = impl_->fd;
  impl->state = impl_->state;
  impl->end = impl_->end;
  if (as_it_is_now) {
    struct stat now {};
    if (fstat(impl->fd->get(), &now) != 0) {
      return Unavailable("{}: fstat: {}", impl->path, strerror(errno));
    }
    impl->state = StateOf(now);
    if (impl->state.bytes < impl->end) {
      return Aborted("{}: it was truncated while it was read", impl->path);
    }
  }
  RETURN_IF_ERROR(impl->Begin());
  return TraceFile(std::move(impl));
}

TraceFile::TraceFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TraceFile::TraceFile(TraceFile&&) noexcept = default;
TraceFile& TraceFile::operator=(TraceFile&&) noexcept = default;
TraceFile::~TraceFile() = default;

absl::StatusOr<std::optional<size_t>> TraceFile::Read(char* out, size_t size) {
  if (impl_->bytes_out > limits::kFrameworkFileBytesMax) {
    return ResourceExhausted("the file has more than {} bytes; the rest is not read",
                             limits::kFrameworkFileBytesMax);
  }
  auto n = impl_->gzip ? impl_->ReadGzip(out, size) : impl_->ReadPlain(out, size);
  if (n.ok() && n->value_or(0) > 0) impl_->Account({out, **n});
  return n;
}

absl::StatusOr<size_t> TraceFile::ReadAt(uint64_t offset, char* out, size_t size) const {
  return impl_->ReadAt(offset, out, size);
}
bool TraceFile::is_gzip() const { return impl_->gzip; }

const FileState& TraceFile::state() const { return impl_->state; }
void TraceFile::AcceptState(const FileState& state) { impl_->state = state; }
uint64_t TraceFile::bytes_read() const { return impl_->bytes_out; }
uint64_t TraceFile::ContentMark() { return MarkOf(impl_->hash); }
bool TraceFile::prefix_matches() const { return impl_->prefix_matches; }

void TraceFile::WatchPrefix(uint64_t bytes, uint64_t mark) {
  if (bytes == 0) return;
  impl_->prefix_bytes = bytes;
  impl_->prefix_mark = mark;
  impl_->prefix_hash.emplace();
}

}  // namespace neurontrace
