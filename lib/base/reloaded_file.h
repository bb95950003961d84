// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/watched_file.h"

namespace neurontrace {

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
    file_.IsPossiblyNew();
    return Read();
  }
  // Reads the file if it may be new, or in any case with `force`. Returns whether the contents or
  // the problem have changed.
  bool Poll(bool force) {
    if (!file_.IsPossiblyNew() && !force) return false;
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
