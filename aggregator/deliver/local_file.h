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

// The files of a LocalVolume, and what their operations say when they fail.
namespace neurontrace {

inline constexpr mode_t kLocalFileMode = 0644;

struct LocalPlace {
  UniqueFd directory;
  std::string base;
};

// Of errno, in the terms of Volume. LinkError: of a rename or a second name, which not all can.
absl::Status LocalError(std::string_view what, const std::string& where);
absl::Status LinkError(std::string_view what, const std::string& where);

absl::Status WriteAllBytes(int fd, std::string_view bytes, const std::string& where);
// Some volumes have no sync of directories; what they take is as durable as they make it.
absl::Status SyncDirectoryOf(int directory, const std::string& where);

// One that is written under `temporary` and renamed.
absl::StatusOr<std::unique_ptr<Volume::File>> MakeRenamedFile(LocalPlace place,
                                                              std::string temporary,
                                                              std::string where);
// One that is written under its own name. What is there stays while the same is written:
// another capture's manifest may name it.
absl::StatusOr<std::unique_ptr<Volume::File>> MakeInPlaceFile(LocalPlace place, std::string where);

}  // namespace neurontrace
