// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"

// Files that people write, and that may be written again while a daemon runs: rules, access,
// tokens.
namespace neurontrace {

// All of a regular file of at most `bytes_max` bytes. NOT_FOUND, or FAILED_PRECONDITION where it
// cannot be read, is no regular file, or is larger; the message names it. Blocks on the disk, but
// not on a FIFO.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t bytes_max);

// The token in a file of at most `bytes_max` bytes, which somebody else may exchange, as Kubernetes
// does every hour: one line of printable ASCII, without the blanks behind it. ReadSmallFile's
// errors, and FAILED_PRECONDITION where there is no such line, which names the file and nothing in
// it.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path, size_t bytes_max);

// Which version of a file is at a path, by its place, size and time; a default one where there
// is none.
struct FileVersion {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t bytes = -1;       // -1: it is not there
  uint64_t changed_ns = 0;  // CLOCK_REALTIME of its file system

  // Whether the file, read at `read_realtime_ns`, could have been written again within a tick of
  // its file system's clock, so that an equal mark proves nothing.
  bool WasYoungAt(uint64_t read_realtime_ns) const;

  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};
FileVersion MarkOf(const std::string& path);

// A file that is read again when it has changed. One thread; blocks on the disk.
class WatchedFile {
 public:
  // `clock` outlives it.
  WatchedFile(std::string path, const Clock& clock) : path_(std::move(path)), clock_(clock) {}

  // Whether it may be another one than at the last call; true at the first. Read it then, after
  // this.
  bool MayBeNew();

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  const Clock& clock_;
  bool looked_ = false;
  FileVersion mark_;
  uint64_t looked_realtime_ns_ = 0;
};

// The contents of a watched file in their last good version: if a new one is bad, or the file is
// gone, they stay, and problem() says why. One thread; blocks on the disk.
template <typename Contents>
class ReloadedFile {
 public:
  using Reader = std::function<absl::StatusOr<Contents>(const std::string& path)>;
  // `clock` outlives it.
  ReloadedFile(std::string path, Reader reader, const Clock& clock)
      : file_(std::move(path), clock), reader_(std::move(reader)) {}

  // Reads the file for the first time; the reader's errors.
  absl::Status Load() {
    file_.MayBeNew();
    return Read();
  }
  // Reads the file if it may be new, or in any case. Returns whether the contents or the problem
  // are others than before.
  bool Poll(bool force) {
    if (!file_.MayBeNew() && !force) return false;
    const Contents contents = contents_;
    const std::string problem = problem_;
    return !Read().ok() ? problem_ != problem : !problem.empty() || !(contents_ == contents);
  }

  const std::string& path() const { return file_.path(); }
  const Contents& contents() const { return contents_; }
  // Of the file as it is now; empty: none.
  const std::string& problem() const { return problem_; }

 private:
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
