// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace neurontrace {

// A new directory for a test, removed with its contents by the destructor. Aborts if it cannot be
// made. One thread.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string form = std::filesystem::temp_directory_path() / "nt_test_XXXXXX";
    if (mkdtemp(form.data()) == nullptr) {
      perror("mkdtemp");
      abort();
    }
    path_ = form;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;  // left behind where the test has taken the permissions away
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const {
    return std::filesystem::path(path_) / name;
  }

 private:
  std::string path_;
};

}  // namespace neurontrace
