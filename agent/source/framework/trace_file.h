// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

struct stat;

namespace neurontrace {

// What the file system says of a file. A file with other content differs, even if it has the same
// size and somebody set its time of modification back: nobody can set `changed_ns`.
struct FileState {
  uint64_t bytes = 0;
  uint64_t modified_ns = 0;  // CLOCK_REALTIME of the machine that wrote it
  uint64_t changed_ns = 0;   // the last change of its content, name, links, owner or mode
  uint64_t device = 0;
  uint64_t inode = 0;
  friend bool operator==(const FileState&, const FileState&) = default;
};
FileState StateOf(const struct stat& status);

// What the first bytes of a file, uncompressed, show it to be.
enum class ContentKind : uint8_t {
  kUnknown,         // none of the others
  kTraceEventJson,  // JSON with trace events
  kMapping,         // JSON with entries of a mapping file (lib/trace/framework_mapping.h)
  kXSpace,          // XLA's XSpace message, as JAX's profiler writes it
  kGzip,            // gzip inside gzip
};
// How many bytes DetectContent wants to see, if there are as many.
inline constexpr size_t kContentProbeBytes = 64u << 10;
ContentKind DetectContent(std::string_view first_bytes);
// "HTML", "a zip archive", "gzip data inside gzip data": what a file that is no trace looks like,
// for people.
std::string DescribeContent(std::string_view first_bytes);

// The bytes of one trace file from its beginning, uncompressed on the way where the file is gzip
// (known by its first bytes, not by its name; several gzip members in a row are one file). Reads
// what the file held when it was opened: bytes appended later are not read, and any other change is
// an error. One thread at a time.
class TraceFile {
 public:
  // NOT_FOUND and the like with the path, INVALID_ARGUMENT where it is no regular file. Where
  // `root` is given the path lies below it, and is a job's to make: no symbolic link behind the
  // root is followed, as this process may read more than that job may.
  static absl::StatusOr<TraceFile> Open(const std::string& path, const std::string& root = "");

  TraceFile(TraceFile&&) noexcept;
  TraceFile& operator=(TraceFile&&) noexcept;
  ~TraceFile();

  // A reading of its own of the same open file from its beginning. It expects the file to be as it
  // was when the first one was opened; `as_it_is_now`: as it is now.
  absl::StatusOr<TraceFile> ReadAgain(bool as_it_is_now = false) const;

  // Up to `size` bytes; 0 at the end, nothing where a piece of work gave none, as empty gzip
  // members do: to be called again. DATA_LOSS where the compressed data is broken or ends early,
  // RESOURCE_EXHAUSTED beyond limits::kFrameworkFileBytesMax; what was read before stays good.
  // ABORTED if the file is not as it was expected to be: nothing was given out since it changed,
  // and after AcceptState() the same bytes are read again.
  absl::StatusOr<std::optional<size_t>> Read(char* out, size_t size);

  // Up to `size` bytes of the file itself from `offset` on, fewer only at its end. ABORTED as Read.
  absl::StatusOr<size_t> ReadAt(uint64_t offset, char* out, size_t size) const;
  bool is_gzip() const;

  const FileState& state() const;
  void AcceptState(const FileState& state);

  // Of the uncompressed bytes given out so far: their number, and the first 64 bits of their
  // SHA-256 with the lowest one set, so that it is not 0. ContentMark() ends the reading.
  uint64_t bytes_read() const;
  uint64_t ContentMark();
  // Whether the first `bytes` bytes have this mark. Known once they have been read; set before.
  void WatchPrefix(uint64_t bytes, uint64_t mark);
  bool prefix_matches() const;

 private:
  struct Impl;
  explicit TraceFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace neurontrace
