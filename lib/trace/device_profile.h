// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/trace/artifact.h"

namespace neurontrace {

// The facts that the name and the place of a device profile (*.ntff) contain: a row of the vendor's
// DeviceProfileList. The content of the file is not read. A plain value.
struct DeviceProfile {
  // As the vendor's viewer shows it: "<instance>_pid_<pid>_nc_<n>_session_<s>".
  std::string name;
  std::string instance_id;
  uint32_t process_id = 0;  // in the pid namespace of its process
  uint32_t nc_id = 0;
  // Names of the second form of DeviceProfileOf have none.
  std::optional<uint64_t> session_id;
  std::string path;  // ArtifactPlace::path()
  friend bool operator==(const DeviceProfile&, const DeviceProfile&) = default;
};

// Parses profile_nc_<n>_session_<s>.ntff and <hash>_instid_<k>_vnc_<n>.ntff. Returns nullopt if the
// file is not a device profile, or its name does not contain its core.
std::optional<DeviceProfile> DeviceProfileOf(const ArtifactPlace& place);

}  // namespace neurontrace
