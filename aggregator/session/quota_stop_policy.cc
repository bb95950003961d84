// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/quota_stop_policy.h"

#include <fmt/format.h>

#include <utility>

#include "absl/status/statusor.h"
#include "aggregator/session/capture_request.h"
#include "lib/trace/capture_limits.h"

namespace neurontrace {

QuotaStopPolicy::QuotaStopPolicy(CaptureAllowance allowance, const SessionTime& now)
    : allowance_(std::move(allowance)),
      allowance_due_ns_(now.monotonic_ns + CaptureAllowance::kAgeMaxNs) {}

// Called on every tick of every recording capture, therefore limited in time before anything is
// computed.
std::string QuotaStopPolicy::Check(const CaptureRecord& record, const AgentRegistry& registry,
                                   StorageQuota& quota, const SessionTime& now) {
  const CaptureMode mode = record.spec.mode;
  if (mode == CaptureMode::kFlightRecorder || mode == CaptureMode::kPreview) return "";
  if (now.monotonic_ns < checked_ns_ + limits::kQuotaCheckNs) return "";
  checked_ns_ = now.monotonic_ns;
  const uint64_t stored = quota.StoredBytes(record.id);
  // Other captures store as well. After a restart, agents return one by one, and only they know
  // which jobs the workers belong to.
  if (!allowance_ || now.monotonic_ns >= allowance_due_ns_) {
    absl::StatusOr<CaptureAllowance> allowance =
        quota.Admit(record.spec, SelectedJobs(record.spec, registry), stored);
    allowance_due_ns_ = now.monotonic_ns + CaptureAllowance::kAgeMaxNs;
    // A store that cannot be read at present is no reason to stop.
    if (allowance.ok()) allowance_ = *std::move(allowance);
    if (!allowance_) return "";
  }
  if (stored >= allowance_->bytes) {
    return fmt::format("it has reached {}", allowance_->words);
  }
  if (!quota.HasRoom()) return "the store has reached its quota (--quota-store-bytes)";
  return "";
}

}  // namespace neurontrace
