// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/trace/artifact.h"

namespace neurontrace {

// What the name and the place of a device profile (*.ntff) say of it: a row of the vendor's
// DeviceProfileList. Its content is not read. A plain value.
struct DeviceProfile {
  std::string name;  // "<instance>_pid_<pid>_nc_<n>_session_<s>", as the vendor's viewer has it
  std::string instance_id;
  uint32_t process_id = 0;  // in the pid namespace of its process
  uint32_t nc_id = 0;
  std::optional<uint64_t> session_id;
  std::string path;  // ArtifactPlace::path()
  friend bool operator==(const DeviceProfile&, const DeviceProfile&) = default;
};

// Knows profile_nc_<n>_session_<s>.ntff and <hash>_instid_<k>_vnc_<n>.ntff. nullopt: it is no
// device profile, or its name does not say of which core.
std::optional<DeviceProfile> DeviceProfileOf(const ArtifactPlace& place);

}  // namespace neurontrace
