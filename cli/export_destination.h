// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace neurontrace::cli {

// Where the CLI puts the files of an export: under a temporary name that takes the real one in
// Keep, so that what has the real name is always whole; what is not kept is removed. Not
// thread-safe, but for temporary().
class ExportDestination {
 public:
  virtual ~ExportDestination() = default;

  // The files of an export, as its replies tell them. DATA_LOSS for replies that make no sense,
  // FAILED_PRECONDITION where nothing can be written.
  virtual absl::Status Begin(const std::string& name) = 0;
  virtual absl::Status Write(uint32_t number, const std::string& data) = 0;
  virtual absl::Status End(uint32_t number) = 0;

  // Everything is there. DATA_LOSS where a file has not ended.
  virtual absl::Status Keep() = 0;

  // What lies about until then; empty for standard output. Constant.
  virtual const std::string& temporary() const = 0;
};

// One file, or standard output for "-".
absl::StatusOr<std::unique_ptr<ExportDestination>> OpenFileDestination(const std::string& path);

// A new directory: one that is there must be empty.
absl::StatusOr<std::unique_ptr<ExportDestination>> OpenDirectoryDestination(
    const std::string& path);

// Removes a temporary file or directory. Allocates: not for signal handlers.
void RemoveTemporary(const std::string& temporary);

}  // namespace neurontrace::cli
