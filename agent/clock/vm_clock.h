// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/file_system.h"

namespace neurontrace {

// Reads the hypervisor's vmclock page (/dev/vmclock0; linux/vmclock-abi.h). Only its disruption
// marker is used, which changes when the counter under raw was disrupted, as by a live migration.
// One thread.
class VmClock {
 public:
  static constexpr char kPath[] = "/dev/vmclock0";
  // Fails with NOT_FOUND if there is no such device, with FAILED_PRECONDITION if it may not be
  // read, and with INVALID_ARGUMENT for a page of another kind or version.
  static absl::StatusOr<VmClock> Open(FileSystem& files, const std::string& path);

  // Returns nothing while the page is being written, or if it cannot be read any more. The value
  // has no meaning; only a change of it does.
  std::optional<uint64_t> DisruptionMarker();

 private:
  explicit VmClock(std::unique_ptr<FileSystem::File> file) : file_(std::move(file)) {}
  std::unique_ptr<FileSystem::File> file_;
};

}  // namespace neurontrace
