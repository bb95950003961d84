// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/unique_fd.h"
#include "lib/trace/artifact.h"

namespace neurontrace {

// What tells whether a file is still the same.
struct ArtifactFileState {
  uint64_t bytes = 0;
  uint64_t modified_ns = 0;
  uint64_t inode = 0;
  friend bool operator==(const ArtifactFileState&, const ArtifactFileState&) = default;
};

// A file of the vendor's layout in one inspect directory.
struct FoundArtifact {
  std::string root;  // the inspect directory
  ArtifactPlace place;
  ArtifactFileState state;
  friend bool operator==(const FoundArtifact&, const FoundArtifact&) = default;
};

// The artifacts in `root` that are this instance's: those of `<instance_id>_pid_…` and of neffs/.
// Follows no symbolic link below `root`, and looks at limits::kInspectEntriesMax entries;
// `truncated` tells that there were more. What cannot be read is not there.
std::vector<FoundArtifact> FindArtifacts(const std::string& root, const std::string& instance_id,
                                         bool& truncated);

// One of them, open for reading. Every step of its path is opened without following a symbolic
// link, so that what is read lies under the inspect directory and is a plain file. One thread.
class ArtifactFile {
 public:
  // NOT_FOUND, or FAILED_PRECONDITION for what is no plain file.
  static absl::StatusOr<ArtifactFile> Open(const std::string& root, const ArtifactPlace& place);

  absl::StatusOr<ArtifactFileState> State() const;
  // The bytes from `offset` on, fewer at the end.
  absl::StatusOr<std::string> Read(uint64_t offset, size_t bytes_max) const;

 private:
  explicit ArtifactFile(UniqueFd file) : file_(std::move(file)) {}
  UniqueFd file_;
};

}  // namespace neurontrace
