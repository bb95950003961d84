// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/execution_coverage.h"

#include <fmt/format.h>

namespace neurontrace {

std::string DescribeLateCores(const CaptureBegin& begin, const CaptureWorkerStatus& status) {
  const uint64_t first = begin.first_execution;
  const uint64_t lowest = status.first_execution;
  const uint64_t highest = status.highest_first_execution;
  if (first == 0 || lowest == 0 || status.framework) return "";
  if (const uint32_t without = status.cores_without_execution; without > 0) {
    return fmt::format("{} of its cores recorded none of the executions from {} on", without,
                       first);
  }
  if (status.joined_late || (lowest == first && highest == first)) return "";
  if (highest == 0) {
    return fmt::format(
        "the executions at which its cores began are not all known, because its agent restarted or "
        "is of an earlier version; execution {} was to be their first",
        first);
  }
  if (lowest == highest)
    return fmt::format("its cores began at execution {}, not {}", lowest, first);
  return fmt::format("its cores began at executions {} to {}, not all at {}", lowest, highest,
                     first);
}

std::string DescribeEarlyEnd(const CaptureBegin& begin, const CaptureWorkerStatus& status) {
  const uint64_t last = begin.last_execution;
  const uint64_t lowest = status.lowest_newest_execution;
  if (last == 0 || status.first_execution == 0 || status.framework) return "";
  if (lowest >= last) return "";
  if (lowest == 0) {
    return fmt::format("it is not known that all of its cores reached execution {}", last);
  }
  return fmt::format("not all of its cores reached execution {}: the newest was {} on one of them",
                     last, lowest);
}

}  // namespace neurontrace
