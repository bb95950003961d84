// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace neurontrace::cli {

// A directory of this run and this user alone, locked while the run lives and removed at its end.
// What runs that were killed left behind is removed when the next one begins. One thread.
class ScratchDirectory {
 public:
  // In `base`, which must be there. FAILED_PRECONDITION names the directory.
  static absl::StatusOr<std::unique_ptr<ScratchDirectory>> Make(const std::string& base);
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }
  // It stays, for good.
  void Keep();

 private:
  ScratchDirectory(std::string path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  const std::string path_;
  UniqueFd lock_;
  bool is_kept_ = false;
};

}  // namespace neurontrace::cli
