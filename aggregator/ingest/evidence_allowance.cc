// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/evidence_allowance.h"

#include <algorithm>

#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/trace/clock_evidence_limits.h"

namespace neurontrace {
namespace {

// How often all entries are searched for an unused one while the table is full.
constexpr uint64_t kSweepIntervalNs = 10 * kNsPerSecond;
// A token bucket as a time: one byte costs the time in which the hourly rate allows it. A full
// bucket is worth kWholeNs.
constexpr uint64_t kByteNs = 3'600 * kNsPerSecond / limits::kClockHostBytesPerHourMax;
constexpr uint64_t kWholeNs = limits::kClockHostBytesAtOnceMax * kByteNs;

}  // namespace

// The generic cell rate algorithm (ITU-T I.371): one timestamp per instance replaces a level and
// the time of its last update.
absl::Status EvidenceAllowance::Take(const std::string& instance_id, size_t bytes,
                                     uint64_t now_ns) {
  const MutexLock lock(mutex_);
  auto known = due_ns_.find(instance_id);
  if (known == due_ns_.end() && !HasPlace(now_ns)) {
    return ResourceExhausted("clock evidence of {} other instances is being stored",
                             due_ns_.size());
  }
  // The allowance is a time in the future: each byte moves it further, and the clock catches up.
  const uint64_t from_ns = known == due_ns_.end() ? now_ns : std::max(known->second, now_ns);
  const bool fits =
      bytes <= limits::kClockHostBytesAtOnceMax && from_ns + bytes * kByteNs <= now_ns + kWholeNs;
  if (!fits) {
    return ResourceExhausted("more than the limit of {} bytes of clock evidence per hour",
                             limits::kClockHostBytesPerHourMax);
  }
  due_ns_.insert_or_assign(instance_id, from_ns + bytes * kByteNs);
  return absl::OkStatus();
}

// Searching all entries takes time proportional to their number, so a flood of invented instances
// may cause it only once per interval.
bool EvidenceAllowance::HasPlace(uint64_t now_ns) {
  if (due_ns_.size() < limits::kClockHostsMax) return true;
  if (now_ns < next_sweep_ns_) return false;
  next_sweep_ns_ = now_ns + kSweepIntervalNs;
  absl::erase_if(due_ns_, [now_ns](const auto& host) { return host.second <= now_ns; });
  return due_ns_.size() < limits::kClockHostsMax;
}

}  // namespace neurontrace
