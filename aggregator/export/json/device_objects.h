// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "aggregator/derive/memory_use.h"
#include "trace/device_profile.h"

namespace neurontrace {

// What is in use of a device's memory, under the names of the columns of the vendor's
// SystemProfileHbmUsage.
void AppendHbmUsage(const HbmIdentity& memory, const HbmSample& sample, std::string& out);
// An object of the vendor's `device_profile_list`.
void AppendDeviceProfile(const DeviceProfile& profile, std::string& out);

}  // namespace neurontrace
