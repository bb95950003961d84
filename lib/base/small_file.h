// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

// Files that people write, and that may be written again while a daemon runs: trigger rules, access
// policy, tokens.
namespace neurontrace {

// Returns the contents of a regular file of at most `bytes_max` bytes. Fails with NOT_FOUND if
// there is none, and with FAILED_PRECONDITION if it cannot be read, is not a regular file, or is
// larger; the message names the file. Follows links. Blocks on the disk, but not on a FIFO. Any
// thread.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t bytes_max);

// Returns the token in a file of at most `bytes_max` bytes: one line of printable ASCII, without
// trailing white space. Another program may replace the file, as Kubernetes does every hour, so
// callers read it again for each use. Fails as ReadSmallFile does, and with FAILED_PRECONDITION if
// there is no such line; the message names the file and never its contents.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path, size_t bytes_max);

// Identifies the version of a file at a path by its place, size and time. Default: there is no
// file.
struct FileVersion {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t bytes = -1;       // -1: it does not exist
  uint64_t changed_ns = 0;  // CLOCK_REALTIME of its file system

  // Returns whether the file, read at `read_realtime_ns`, could have been written again within a
  // tick of its file system's clock, so that an equal mark proves nothing.
  bool WasRecentAt(uint64_t read_realtime_ns) const;

  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};
// Returns the version of the file at `path`, or a default one if it cannot be examined. Follows
// links.
FileVersion MarkOf(const std::string& path);

}  // namespace neurontrace
