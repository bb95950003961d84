// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/store/database.h"
#include "trace/ids.h"

namespace neurontrace {

// What is there of artifacts, and what of it is not as it should be.
struct ArtifactCheck {
  uint64_t contents = 0;
  uint64_t bytes = 0;  // of these
  std::vector<std::pair<CaptureId, std::string>> faults;
  std::vector<std::string> notes;
};

// Reads every content that a reference names, and compares its size and hash. Changes nothing;
// `directory` as with ArtifactStore, which has not been made for the database.
absl::StatusOr<ArtifactCheck> CheckArtifacts(const Database& database,
                                             const std::string& directory);

}  // namespace neurontrace
