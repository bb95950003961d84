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

// Where the CLI puts the files of an export: in a temporary place that is renamed by Keep, so that
// a file with the real name is always whole. Files that are not kept are removed, or left in that
// place for another export of the same. One thread.
class ExportDestination {
 public:
  virtual ~ExportDestination() = default;

  // Begins, continues and ends the files of an export, as its replies report them. A file begins
  // with its `held_bytes` that exist already. Fail with DATA_LOSS for inconsistent replies, and
  // with FAILED_PRECONDITION if nothing can be written.
  virtual absl::Status Begin(const std::string& name, uint64_t held_bytes) = 0;
  virtual absl::Status Write(uint32_t number, const std::string& data) = 0;
  virtual absl::Status End(uint32_t number) = 0;

  // Returns what exists of an interrupted export, after reading all of it; empty if it cannot be
  // continued. All files are begun again from then on.
  virtual absl::StatusOr<std::vector<v1::HeldFile>> GoOn() = 0;
  // Removes everything; all files are begun again from then on.
  virtual absl::Status BeginAnew() = 0;

  // Gives the files their real name. Fails with DATA_LOSS if a file has not ended.
  virtual absl::Status Keep() = 0;

  // Returns the temporary place; null if bytes are written directly. Its path and whether it can be
  // left are constant.
  virtual ExportPart* part() = 0;
};

// Opens a file, or a new directory; an existing one must be empty. Links are followed and stay.
// Standard output ("-"), devices and pipes are written directly.
absl::StatusOr<std::unique_ptr<ExportDestination>> OpenDestination(ExportPart::Spec spec);

}  // namespace neurontrace::cli
