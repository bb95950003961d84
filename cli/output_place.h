// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace neurontrace::cli {

// Where the path of an -o leads. Links are followed, so that their target is written and the links
// stay. A plain value; the functions below look at the disk, on the main thread.
struct OutputPlace {
  // How bytes are written there.
  enum class Kind {
    kNew,  // a regular file, a directory, or nothing: what is written gathers beside it and takes
           // its name
    kStream,     // a device, a pipe, or a file that cannot be replaced: it is written straight into
    kDescriptor  // a descriptor of this process
  };
  Kind kind = Kind::kNew;
  std::string path;     // with links followed
  int descriptor = -1;  // of kDescriptor

  bool is_standard_output() const { return kind == Kind::kDescriptor && descriptor == 1; }
};

// Finds where `path` leads; "-" is standard output. Fails with FAILED_PRECONDITION if nothing can
// be written there: a socket, a block device, a descriptor that is not open for writing, or a cycle
// of links. Also fails for a link that the kernel would not follow, because another user could have
// made it (fs.protected_symlinks, proc_sys_fs(5)).
absl::StatusOr<OutputPlace> FindOutputPlace(const std::string& path);

// Returns whether `path` is "-" or another name of standard output.
bool IsStandardOutput(const std::string& path);

// Returns whether a file written at `path` can be opened there afterwards: it leads to no device,
// pipe or descriptor.
bool LeadsToFile(const std::string& path);

// Checks before a recording that a file, or with `is_directory` a directory of files, can be
// written at `path`. Makes and removes a file or directory beside it.
absl::Status CheckOutputPlace(const std::string& path, bool is_directory);

}  // namespace neurontrace::cli
