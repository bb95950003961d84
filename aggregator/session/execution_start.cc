// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/execution_start.h"

#include <algorithm>

namespace neurontrace {
namespace {

// Agents report about this often, and an order takes at most about this long to reach all of them.
constexpr uint64_t kObservedNs = 200'000'000;
constexpr uint64_t kAheadNs = 200'000'000;
constexpr uint64_t kAheadMin = 2;
// Beyond this the numbers of the workload are not consecutive.
constexpr uint64_t kAheadMax = 1'000'000;

// Framework files have no executions.
bool IsRecording(const CaptureWorkerStatus& status) {
  return !status.framework && status.state == CaptureWorkerState::kRecording;
}

}  // namespace

std::optional<uint64_t> ExecutionStart::Choose(const CaptureRecord& record,
                                               uint64_t now_monotonic_ns) {
  uint64_t highest = 0;
  bool all = true;
  for (const CaptureWorkerStatus& status : record.workers) {
    if (!IsRecording(status)) {
      // An armed worker will soon record and report executions, too.
      all = all && status.state != CaptureWorkerState::kArmed;
      continue;
    }
    all = all && status.newest_execution > 0;
    highest = std::max(highest, status.newest_execution);
  }
  // Nothing has run so far. The wait starts with the first report, not with the capture.
  if (highest == 0) return std::nullopt;
  if (first_seen_ns_ == 0) {
    first_seen_ns_ = now_monotonic_ns;
    first_seen_ = highest;
  }
  const uint64_t watched_ns = now_monotonic_ns - first_seen_ns_;
  if (watched_ns < (all ? kObservedNs : kPatienceNs)) return std::nullopt;
  // The worker that is furthest decides, because no worker may have passed the chosen number.
  const uint64_t ran = highest > first_seen_ ? highest - first_seen_ : 0;
  const double per_ns = static_cast<double>(ran) / static_cast<double>(watched_ns);
  const auto ahead = static_cast<uint64_t>(per_ns * static_cast<double>(kAheadNs)) + 1;
  // Twice as many, because the reported numbers are out of date by about the same time.
  return highest + std::clamp(2 * ahead, kAheadMin, kAheadMax);
}

}  // namespace neurontrace
