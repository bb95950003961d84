// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/evidence_allowance.h"

#include <algorithm>

#include "base/status.h"
#include "base/time_units.h"
#include "trace/clock_evidence_limits.h"

namespace neurontrace {
namespace {

// A look at all of them while there is no place for another.
constexpr uint64_t kSweepIntervalNs = 10 * kNsPerSecond;
constexpr uint64_t kByteNs = 3'600 * kNsPerSecond / limits::kClockHostBytesPerHourMax;
constexpr uint64_t kWholeNs = limits::kClockHostBytesAtOnceMax * kByteNs;

}  // namespace

absl::Status EvidenceAllowance::Take(const std::string& instance_id, size_t bytes,
                                     uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  auto known = due_ns_.find(instance_id);
  if (known == due_ns_.end() && !HasPlace(now_ns)) {
    return ResourceExhausted("clock evidence of {} other instances is being stored",
                             due_ns_.size());
  }
  const uint64_t from_ns = known == due_ns_.end() ? now_ns : std::max(known->second, now_ns);
  const bool fits =
      bytes <= limits::kClockHostBytesAtOnceMax && from_ns + bytes * kByteNs <= now_ns + kWholeNs;
  if (!fits) {
    return ResourceExhausted("more than the {} bytes of clock evidence that may come in an hour",
                             limits::kClockHostBytesPerHourMax);
  }
  due_ns_.insert_or_assign(instance_id, from_ns + bytes * kByteNs);
  return absl::OkStatus();
}

bool EvidenceAllowance::HasPlace(uint64_t now_ns) {
  if (due_ns_.size() < limits::kClockHostsMax) return true;
  if (now_ns < next_sweep_ns_) return false;
  next_sweep_ns_ = now_ns + kSweepIntervalNs;
  absl::erase_if(due_ns_, [now_ns](const auto& host) { return host.second <= now_ns; });
  return due_ns_.size() < limits::kClockHostsMax;
}

}  // namespace neurontrace
