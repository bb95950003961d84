// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/capture_arming.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/trace/framework_limits.h"
#include "lib/trace/limits.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// A worker counts as armed if nothing speaks against it, even before its own answer. IsEndCheckDue
// decides how long to wait for answers.
ArmingTally Tally(const CaptureRecord& record) {
  ArmingTally tally;
  for (const CaptureWorkerStatus& status : record.workers) {
    if (status.framework) continue;
    ++tally.selected;
    const bool is_out =
        status.state == CaptureWorkerState::kRefused || status.state == CaptureWorkerState::kLost;
    if (!is_out && status.obstacle == CaptureObstacle::kNone) {
      ++tally.armed;
      continue;
    }
    // An agent of an earlier version gives the reason only as text.
    ++tally.obstacles[status.obstacle == CaptureObstacle::kNone ? CaptureObstacle::kRuntimeRefused
                                                                : status.obstacle];
  }
  return tally;
}

bool ArmingTally::IsEnoughFor(const CaptureSpec& spec) const {
  // Compares integers, so that 100 % means all of them whatever their number. Both factors are 32
  // bits wide, so the product of 64 bits cannot overflow.
  if (uint64_t{armed} * 100 < uint64_t{spec.conditions.require_percent} * selected) return false;
  return armed > 0 || IsStanding(spec.mode) || !spec.filter.include_neuron;
}

std::string ArmingTally::NotEnoughReason(const CaptureSpec& spec) const {
  std::string text;
  if (armed == 0) {
    text = selected == 1 ? "the selected worker cannot take part"
                         : fmt::format("none of the {} selected workers can take part", selected);
  } else {
    text = fmt::format("{} of {} selected workers are armed, but {} are required", armed, selected,
                       spec.conditions.require_percent == 100
                           ? "all"
                           : fmt::format("{} %", spec.conditions.require_percent));
  }
  const char* separator = " (";
  for (const auto& [obstacle, count] : obstacles) {
    text += fmt::format("{}{}: {}", separator, ToString(obstacle), count);
    separator = "; ";
  }
  return obstacles.empty() ? text : text + ")";
}

// Each part is limited before the sum, which therefore cannot overflow. An answer covers one way to
// the agent and one back, so twice its time leaves a margin for a slower second time.
uint64_t BeginLeadNs(uint64_t slowest_answer_ns, uint64_t record_write_ns) {
  const uint64_t answer_ns = std::min(slowest_answer_ns, limits::kBeginLeadMaxNs);
  const uint64_t write_ns = std::min(record_write_ns, limits::kBeginLeadMaxNs);
  return std::clamp(2 * (answer_ns + write_ns), limits::kBeginLeadMinNs, limits::kBeginLeadMaxNs);
}

// A trace by steps begins at the next multiple of a step number, whenever the order arrives.
uint64_t FrameworkLeadNs(const CaptureSpec& spec) {
  const bool by_time = !spec.filter.frameworks.empty() && spec.filter.framework_steps == 0;
  return by_time ? limits::kFrameworkLeadNs : 0;
}

}  // namespace neurontrace
