// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace neurontrace {

// The tag that identifies captures of a trigger.
inline constexpr std::string_view kTriggerTag = "trigger";

// Returns whether only the aggregator sets tags with this key, so that people can trust their
// values. Blanks around the key are ignored, as they would make a forged tag look real.
constexpr bool IsReservedTag(std::string_view key) {
  while (key.starts_with(' ')) key.remove_prefix(1);
  while (key.ends_with(' ')) key.remove_suffix(1);
  return key == kTriggerTag || key == "cause";
}

}  // namespace neurontrace
