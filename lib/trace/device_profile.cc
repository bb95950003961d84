// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/device_profile.h"

#include <charconv>
#include <string_view>

namespace neurontrace {
namespace {

// The end of every device profile's name, and a beginning that DeviceProfile::name omits.
constexpr std::string_view kEnding = ".ntff";
constexpr std::string_view kPrefix = "profile_";

// Parses the number that ends `text` after `mark`, and removes both from `text`. Returns false,
// with `text` unchanged, if the mark is missing or anything but a number follows it.
template <typename Number>
bool TakeLast(std::string_view mark, std::string_view& text, Number& number) {
  const size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return false;
  const std::string_view digits = text.substr(at + mark.size());
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc() || stop != end) return false;
  text = text.substr(0, at);
  return true;
}

}  // namespace

std::optional<DeviceProfile> DeviceProfileOf(const ArtifactPlace& place) {
  std::string_view name = place.name;
  if (place.kind != ArtifactKind::kNtff || !name.ends_with(kEnding)) return std::nullopt;
  name.remove_suffix(kEnding.size());
  DeviceProfile profile;
  const std::string_view words = name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
  profile.name = place.directory + "_" + std::string(words);
  uint64_t number = 0;
  if (TakeLast("_session_", name, number)) {
    profile.session_id = number;
    if (!TakeLast("_nc_", name, profile.nc_id) || name != "profile") return std::nullopt;
  } else if (!TakeLast("_vnc_", name, profile.nc_id) || !TakeLast("_instid_", name, number) ||
             name.empty()) {
    return std::nullopt;
  }
  profile.instance_id = place.instance_id;
  profile.process_id = place.pid;
  profile.path = place.path();
  return profile;
}

}  // namespace neurontrace
