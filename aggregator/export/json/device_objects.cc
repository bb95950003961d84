// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/json/device_objects.h"

#include <array>

#include "aggregator/export/json/json_text.h"

namespace neurontrace {

void AppendHbmUsage(const HbmIdentity& memory, const HbmSample& sample, std::string& out) {
  static const std::array<std::string, kHbmCategories> kKeys = [] {
    std::array<std::string, kHbmCategories> keys;
    for (size_t i = 0; i < keys.size(); ++i) {
      keys[i] = std::string(ToString(static_cast<HbmCategory>(i))) + "_bytes";
    }
    return keys;
  }();
  out += "{\"timestamp\":";
  out += std::to_string(sample.time_ns);
  AppendJsonText("instance_id", memory.instance_id, out);
  AppendJsonNumber("device_idx", memory.device, out);
  AppendJsonNumber("hbm_idx", memory.hbm, out);
  AppendJsonNumber("total_bytes", sample.total_bytes, out);
  for (size_t i = 0; i < kHbmCategories; ++i) {
    AppendJsonNumber(kKeys[i], sample.category_bytes[i], out);
  }
  out += '}';
}

void AppendDeviceProfile(const DeviceProfile& profile, std::string& out) {
  out += "{\"device_profile_name\":";
  AppendAsJsonString(profile.name, out);
  AppendJsonText("instance_id", profile.instance_id, out);
  AppendJsonNumber("process_id", profile.process_id, out);
  AppendJsonNumber("nc_id", profile.nc_id, out);
  if (profile.session_id) AppendJsonNumber("session_id", *profile.session_id, out);
  AppendJsonText("path", profile.path, out);
  out += '}';
}

}  // namespace neurontrace
