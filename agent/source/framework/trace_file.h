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

// What stat(2) reports about a file. A file with other content has another state, even if it has
// the same size and its time of modification was set back: no user can set `changed_ns`.
struct FileState {
  uint64_t bytes = 0;
  uint64_t modified_ns = 0;  // CLOCK_REALTIME of the machine that wrote it
  uint64_t changed_ns = 0;   // the last change of its content, name, links, owner or mode
  uint64_t device = 0;
  uint64_t inode = 0;
  friend bool operator==(const FileState&, const FileState&) = default;
};
// Returns the parts of a stat(2) result that identify a version of the file. Pure.
FileState StateOf(const struct stat& status);

// What the first bytes of a file, after decompression, show it to be.
enum class ContentKind : uint8_t {
  kUnknown,         // none of the others
  kTraceEventJson,  // JSON with trace events
  kMapping,         // JSON with entries of a mapping file (lib/trace/framework_mapping.h)
  kXSpace,          // XLA's XSpace message, as JAX's profiler writes it
  kGzip,            // gzip inside gzip
};
// How many bytes DetectContent should get, if the file has as many.
inline constexpr size_t kContentProbeBytes = 64u << 10;
ContentKind DetectContent(std::string_view first_bytes);
// Describes for people what a file that is no trace looks like: "HTML or XML", "a zip archive".
std::string DescribeContent(std::string_view first_bytes);

// Reads one trace file from its beginning, decompressed on the way if it is gzip (RFC 1952;
// recognised by its first bytes, not by its name; several members in a row are one file). Reads
// what the file held when it was opened: bytes appended later are not read, and any other change is
// an error. Used by one thread at a time; blocks for the disk.
class TraceFile {
 public:
  // Fails with NOT_FOUND or UNAVAILABLE if the file cannot be opened, and with INVALID_ARGUMENT if
  // it is not a regular file; messages have the path. If `root` is given, the path is below it and
  // is under control of a job: no symbolic link below the root is followed, as this process may
  // read more than that job may.
  static absl::StatusOr<TraceFile> Open(const std::string& path, const std::string& root = "");

  TraceFile(TraceFile&&) noexcept;
  TraceFile& operator=(TraceFile&&) noexcept;
  ~TraceFile();

  // Returns an independent reading of the same open file from its beginning. It expects the file to
  // be as it was when the first one was opened, or, with `as_it_is_now`, as it is now.
  absl::StatusOr<TraceFile> Reread(bool as_it_is_now = false) const;

  // Returns the number of bytes read, up to `size`: 0 at the end, and nothing if this call produced
  // none, as with empty gzip members; it is to be called again then. Fails with DATA_LOSS if the
  // compressed data is broken or ends early, and with RESOURCE_EXHAUSTED beyond
  // limits::kFrameworkFileBytesMax; what was read before remains valid. Fails with ABORTED if the
  // file is not as expected: nothing has been returned since it changed, and after AcceptState()
  // the same bytes are read again.
  absl::StatusOr<std::optional<size_t>> Read(char* out, size_t size);

  // Reads up to `size` bytes of the file itself, not decompressed, from `offset` on; fewer only at
  // its end. Fails with ABORTED as Read does.
  absl::StatusOr<size_t> ReadAt(uint64_t offset, char* out, size_t size) const;
  bool is_gzip() const;

  const FileState& state() const;
  void AcceptState(const FileState& state);

  // Returns the number of decompressed bytes returned so far.
  uint64_t bytes_read() const;
  // Ends the reading and returns a number that identifies the content: the first 64 bits of its
  // SHA-256, with the lowest one set so that it is never 0.
  uint64_t ContentMark();
  // Checks whether the first `bytes` bytes have this mark. To be set before reading;
  // prefix_matches() is valid once they have been read.
  void WatchPrefix(uint64_t bytes, uint64_t mark);
  bool prefix_matches() const;

 private:
  struct Impl;
  explicit TraceFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace neurontrace
