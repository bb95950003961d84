// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/framework_mapping.h"

namespace neurontrace {

bool IsFrameworkMappingName(std::string_view path) {
  constexpr std::string_view kBegin = "framework_mapping_";
  constexpr std::string_view kEnd = ".json";
  // Checked from both ends towards the middle, where only digits and underscores may remain.
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (name.ends_with(".gz")) name.remove_suffix(3);
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return false;
  name.remove_prefix(kBegin.size());
  if (name.size() <= kEnd.size()) return false;
  name.remove_suffix(kEnd.size());
  return name.find_first_not_of("0123456789_") == std::string_view::npos;
}

}  // namespace neurontrace
