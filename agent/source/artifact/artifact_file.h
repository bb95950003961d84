// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/unique_fd.h"
#include "lib/trace/artifact.h"

namespace neurontrace {

// What identifies a version of a file's content, as far as stat(2) shows it. Two equal states are
// taken for equal content.
struct ArtifactFileState {
  uint64_t bytes = 0;
  // CLOCK_REALTIME of the file system, which may be another host's.
  uint64_t modified_ns = 0;
  uint64_t inode = 0;
  friend bool operator==(const ArtifactFileState&, const ArtifactFileState&) = default;
};

// A file of the vendor's layout in one inspect directory (docs/operator/artifacts.md).
struct FoundArtifact {
  std::string root;  // the inspect directory
  ArtifactPlace place;
  ArtifactFileState state;
  friend bool operator==(const FoundArtifact&, const FoundArtifact&) = default;
};

// Returns the artifacts in `root` that belong to this instance, sorted by path: those of
// `<instance_id>_pid_...` and of neffs/. Follows no symbolic link below `root`, and visits at most
// limits::kInspectEntriesMax entries; sets `truncated` if there are more, and leaves it otherwise.
// Files that cannot be read are left out. Blocks for the disk. `root` itself may be a link: the
// operator named it. Empty if it cannot be opened.
std::vector<FoundArtifact> FindArtifacts(const std::string& root, const std::string& instance_id,
                                         bool& truncated);

// One artifact, open for reading. Each step of its path is opened without following a symbolic
// link, so that what is read is a regular file below the inspect directory: jobs write there, and
// the agent may read more than they may. One thread; blocks for the disk.
class ArtifactFile {
 public:
  // Fails with NOT_FOUND, or with FAILED_PRECONDITION if it is not a regular file.
  static absl::StatusOr<ArtifactFile> Open(const std::string& root, const ArtifactPlace& place);

  // Fails with UNAVAILABLE if the file system does.
  absl::StatusOr<ArtifactFileState> State() const;
  // Returns the bytes from `offset` on, fewer at the end. Fails with UNAVAILABLE if the disk does.
  absl::StatusOr<std::string> Read(uint64_t offset, size_t bytes_max) const;

 private:
  explicit ArtifactFile(UniqueFd file) : file_(std::move(file)) {}
  UniqueFd file_;
};

}  // namespace neurontrace
