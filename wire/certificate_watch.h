// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/small_file.h"

namespace neurontrace {

// Until when the certificate of a file is valid, as the file is now; it is read when it has
// changed. One thread.
class CertificateWatch {
 public:
  // `path` is PEM; empty: there is none.
  explicit CertificateWatch(std::string path) : path_(std::move(path)) {}

  // In seconds since 1970, also when that is over; nothing where no certificate can be read. Looks
  // at the disk.
  std::optional<int64_t> Look();

 private:
  const std::string path_;
  FileMark mark_;  // of what was read
  std::optional<int64_t> end_;
};

}  // namespace neurontrace
