// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/export_part.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace::cli {

// Where the CLI puts the files of an export. They are in a temporary place that is renamed by Keep,
// so that a file with its real name is always whole. Files that are not kept are removed, or left
// in that place for another export of the same request. Used by ExportTransfer; one thread.
class ExportDestination {
 public:
  virtual ~ExportDestination() = default;

  // Start, fill and finish the files of an export, as its replies report them. Files are numbered
  // from 0 in the order of Begin, and several may be open. A file begins with its `held_bytes`,
  // which exist already. Fail with DATA_LOSS for inconsistent replies, with FAILED_PRECONDITION if
  // the disk refuses, and with RESOURCE_EXHAUSTED for too many files.
  virtual absl::Status Begin(const std::string& name, uint64_t held_bytes) = 0;
  virtual absl::Status Write(uint32_t number, const std::string& data) = 0;
  virtual absl::Status End(uint32_t number) = 0;

  // Returns what exists of an interrupted export, after reading all of it to hash it; empty if it
  // cannot be continued. All files must be begun again from then on.
  virtual absl::StatusOr<std::vector<v1::HeldFile>> Resume() = 0;
  // Removes everything; all files must be begun again from then on. Fails with FAILED_PRECONDITION
  // if bytes cannot be taken back.
  virtual absl::Status Restart() = 0;

  // Gives the files their real name. Fails with DATA_LOSS if a file has not ended, otherwise as
  // ExportPart::TakeName does. Called at most once, as the last function.
  virtual absl::Status Keep() = 0;

  // Returns the temporary place; null if bytes are written directly. Its path and whether it can be
  // left are constant.
  virtual ExportPart* part() = 0;
};

// Opens a file, or with `is_directory` a new directory; an existing one must be empty. Links are
// followed and stay. Standard output ("-"), devices and pipes are written directly. Fails as
// FindOutputPlace and CheckOutputPlace do, before anything is transferred.
absl::StatusOr<std::unique_ptr<ExportDestination>> OpenDestination(ExportPart::Spec spec);

}  // namespace neurontrace::cli
