// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "lib/base/clock.h"
#include "lib/base/small_file.h"

namespace neurontrace {

// Tells whether a file has to be read again. By polling, as inotify does not work on network file
// systems and in mounted secrets. One thread; blocks on the disk.
class WatchedFile {
 public:
  // `clock` must outlive this.
  WatchedFile(std::string path, const Clock& clock) : path_(std::move(path)), clock_(clock) {}

  // Returns whether the file may have changed since the last call; true at the first. The caller
  // reads the file after this returns, not before.
  bool IsPossiblyNew();

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  const Clock& clock_;
  // Whether IsPossiblyNew was called; then the version that it saw, and when.
  bool has_checked_ = false;
  FileVersion mark_;
  uint64_t checked_realtime_ns_ = 0;
};

}  // namespace neurontrace
