// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace neurontrace {

// The tag by which a trigger's captures are known.
inline constexpr std::string_view kTriggerTag = "trigger";

// Whether only the aggregator sets tags with this key, so that what is in them is true.
constexpr bool IsReservedTag(std::string_view key) {
  while (key.starts_with(' ')) key.remove_prefix(1);
  while (key.ends_with(' ')) key.remove_suffix(1);
  return key == kTriggerTag || key == "cause";
}

}  // namespace neurontrace
