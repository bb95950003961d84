// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/file_system.h"

namespace neurontrace {

// The hypervisor's word about this machine's time (/dev/vmclock0; linux/vmclock-abi.h): of all that
// is in it the disruption marker, which changes when the counter under raw was disrupted, as by a
// live migration. One thread.
class VmClock {
 public:
  static constexpr char kPath[] = "/dev/vmclock0";
  // NOT_FOUND where there is none, FAILED_PRECONDITION where it may not be read; INVALID_ARGUMENT
  // for what is no such page.
  static absl::StatusOr<VmClock> Open(FileSystem& files, const std::string& path);

  // nullopt while it is being written, or no longer readable.
  std::optional<uint64_t> DisruptionMarker();

 private:
  explicit VmClock(std::unique_ptr<FileSystem::File> file) : file_(std::move(file)) {}
  std::unique_ptr<FileSystem::File> file_;
};

}  // namespace neurontrace
