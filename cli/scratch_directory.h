// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "lib/base/unique_fd.h"

namespace neurontrace::cli {

// A directory of this run and this user alone, with mode 0700, locked while the run lives and
// removed at its end. Remains of runs that were killed are removed when the next one begins. One
// thread.
class ScratchDirectory {
 public:
  // Makes a directory in `base`, which must exist. Fails with FAILED_PRECONDITION, naming the
  // directory.
  static absl::StatusOr<std::unique_ptr<ScratchDirectory>> Make(const std::string& base);
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }
  // Keeps the directory for good: removes the lock, without which later runs do not touch it.
  void Keep();

 private:
  ScratchDirectory(std::string path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  const std::string path_;
  UniqueFd lock_;
  bool is_kept_ = false;
};

}  // namespace neurontrace::cli
