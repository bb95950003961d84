// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace neurontrace {

// The bytes of one trace file from its beginning, uncompressed on the way where the file is gzip
// (known by its first bytes, not by its name; several gzip members in a row are one file). One
// thread at a time; a second reading is a second object.
class TraceFile {
 public:
  // NOT_FOUND and the like with the path, INVALID_ARGUMENT where it is no regular file. Where
  // `root` is given the path lies below it, and is a job's to make: no symbolic link behind the
  // root is followed, as this process may read more than that job may.
  static absl::StatusOr<TraceFile> Open(const std::string& path, const std::string& root = "");

  TraceFile(TraceFile&&) noexcept;
  TraceFile& operator=(TraceFile&&) noexcept;
  ~TraceFile();

  // Up to `size` bytes; 0 at the end, nothing where a piece of work gave none, as empty gzip
  // members do: to be called again. DATA_LOSS where the compressed data is broken or ends early,
  // RESOURCE_EXHAUSTED beyond limits::kFrameworkFileBytesMax; what was read before stays good.
  absl::StatusOr<std::optional<size_t>> Read(char* out, size_t size);

 private:
  struct Impl;
  explicit TraceFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace neurontrace
