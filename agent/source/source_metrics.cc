// SPDX-License-Identifier: Apache-2.0
#include "agent/source/source_metrics.h"

#include <fmt/format.h>

#include "lib/base/time_units.h"
#include "lib/trace/limits.h"

namespace neurontrace {

std::optional<std::string> DescribeStall(const CanaryWatch& watch, uint64_t now_ns) {
  const std::optional<CanaryWatch::Oldest> oldest = watch.oldest(now_ns);
  // An agent without streams has nothing that could stall.
  if (!oldest || oldest->age_ns <= limits::kCanaryAgeMaxNs) return std::nullopt;
  return fmt::format("stream {}: {} has been acknowledged for {} s", ToString(*oldest->stream),
                     oldest->any ? "no further canary" : "no canary",
                     oldest->age_ns / kNsPerSecond);
}

}  // namespace neurontrace
