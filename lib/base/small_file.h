// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"

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
  bool WasYoungAt(uint64_t read_realtime_ns) const;

  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};
// Returns the version of the file at `path`, or a default one if it cannot be examined. Follows
// links.
FileVersion MarkOf(const std::string& path);

// Tells whether a file has to be read again. By polling, as inotify does not work on network file
// systems and in mounted secrets. One thread; blocks on the disk.
class WatchedFile {
 public:
  // `clock` must outlive this.
  WatchedFile(std::string path, const Clock& clock) : path_(std::move(path)), clock_(clock) {}

  // Returns whether the file may have changed since the last call; true at the first. The caller
  // reads the file after this returns, not before.
  bool MayBeNew();

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  const Clock& clock_;
  // Whether MayBeNew was called; then the version that it saw, and when.
  bool has_checked_ = false;
  FileVersion mark_;
  uint64_t checked_realtime_ns_ = 0;
};

// The contents of a watched file in their last good version: if a new version is bad, or the file
// is gone, the old contents remain, and problem() explains it. One thread; blocks on the disk.
template <typename Contents>
class ReloadedFile {
 public:
  // Reads and parses the file.
  using Reader = std::function<absl::StatusOr<Contents>(const std::string& path)>;
  // `clock` must outlive this.
  ReloadedFile(std::string path, Reader reader, const Clock& clock)
      : file_(std::move(path), clock), reader_(std::move(reader)) {}

  // Reads the file for the first time. Returns the reader's error, after which contents() is a
  // default value.
  absl::Status Load() {
    file_.MayBeNew();
    return Read();
  }
  // Reads the file if it may be new, or in any case with `force`. Returns whether the contents or
  // the problem have changed.
  bool Poll(bool force) {
    if (!file_.MayBeNew() && !force) return false;
    const Contents contents = contents_;
    const std::string problem = problem_;
    return !Read().ok() ? problem_ != problem : !problem.empty() || !(contents_ == contents);
  }

  const std::string& path() const { return file_.path(); }
  const Contents& contents() const { return contents_; }
  // Returns what is wrong with the current version of the file; empty if nothing is.
  const std::string& problem() const { return problem_; }

 private:
  // Reads the file and takes its contents if they are good.
  absl::Status Read() {
    absl::StatusOr<Contents> read = reader_(path());
    problem_ = read.ok() ? "" : std::string(read.status().message());
    if (read.ok()) contents_ = *std::move(read);
    return read.status();
  }

  WatchedFile file_;
  const Reader reader_;
  Contents contents_{};
  std::string problem_;
};

}  // namespace neurontrace
