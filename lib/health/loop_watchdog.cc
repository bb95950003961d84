// SPDX-License-Identifier: Apache-2.0
#include "lib/health/loop_watchdog.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/trace/daemon_limits.h"

namespace neurontrace {

std::optional<uint64_t> LoopWatchdog::AgeNs() const {
  const uint64_t turn_ns = turn_ns_;
  if (turn_ns == 0) return std::nullopt;
  // Another thread may record a turn after this reading; the age is 0 then.
  const uint64_t now_ns = clock_.MonotonicNs();
  return now_ns - std::min(now_ns, turn_ns);
}

std::string LoopWatchdog::DescribeStuck() const {
  const uint64_t age_ns = AgeNs().value_or(0);
  if (age_ns <= limits::kSequenceStuckNs) return "";
  return fmt::format("no task has run for {} s: a task hangs, or waits for a disk",
                     age_ns / 1'000'000'000);
}

}  // namespace neurontrace
