// SPDX-License-Identifier: Apache-2.0
#include "lib/base/time_units.h"

#include <fmt/format.h>

namespace neurontrace {

std::string FormatSeconds(uint64_t ns) {
  return fmt::format("{:.1f} s", static_cast<double>(ns) / kNsPerSecond);
}

}  // namespace neurontrace
