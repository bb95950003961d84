// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/deliver/volume.h"
#include "lib/base/unique_fd.h"

// The files of a LocalVolume, and the errors of their operations. They use POSIX calls directly:
// std::filesystem offers neither fsync nor openat. The functions keep no state and block for the
// disk; a file is used by one thread at a time.
namespace neurontrace {

// Readable by all: the volume is shared so that others read the exports. The umask still applies.
inline constexpr mode_t kLocalFileMode = 0644;

// An open directory and a name in it. Operations use the two instead of a path, so that nobody can
// exchange a directory for a symbolic link in between.
struct LocalPlace {
  UniqueFd directory;
  std::string base;
};

// Return the Status for errno, with the codes that Volume defines. LinkError is for a rename or a
// second link, which not every volume supports, and names the option for those that do not.
absl::Status LocalError(std::string_view what, const std::string& where);
absl::Status LinkError(std::string_view what, const std::string& where);

// Writes everything, continuing after signals and partial writes.
absl::Status WriteAllBytes(int fd, std::string_view bytes, const std::string& where);
// Makes the entries of a directory durable. Returns OK on volumes that cannot sync directories:
// what they accept is as durable as they make it.
absl::Status SyncDirectoryOf(int directory, const std::string& where);

// Creates a file that is written under `temporary` and renamed by Commit.
absl::StatusOr<std::unique_ptr<Volume::File>> MakeRenamedFile(LocalPlace place,
                                                              std::string temporary,
                                                              std::string where);
// Creates a file that is written under its own name. An existing file is kept while the bytes
// written equal its own, because another capture's manifest may name it; it is replaced at the
// first difference.
absl::StatusOr<std::unique_ptr<Volume::File>> MakeInPlaceFile(LocalPlace place, std::string where);

}  // namespace neurontrace
