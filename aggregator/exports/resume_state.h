// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "aggregator/exports/resume_prefix.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

// What the caller already has of each file, by name. Used by one thread at a time.
class ResumeState {
 public:
  // Fails with INVALID_ARGUMENT for a malformed entry and with RESOURCE_EXHAUSTED for more than
  // limits::kExportHeldFilesMax.
  static absl::StatusOr<ResumeState> Of(const v1::ExportRequest& request);

  // Returns the prefix of this file and forgets it; an empty prefix if the caller has nothing.
  ResumePrefix Take(std::string_view name);
  // Returns the first name that was not taken, or an empty text.
  std::string Untaken() const;
  uint64_t bytes() const { return bytes_; }

 private:
  absl::flat_hash_map<std::string, ResumePrefix> files_;
  // Of all files together.
  uint64_t bytes_ = 0;
};

}  // namespace neurontrace
