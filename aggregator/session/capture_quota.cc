// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/capture_quota.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Returns what is left of a quota, which may be lower than what is used: quotas can be lowered
// while data is stored.
uint64_t Left(uint64_t quota, uint64_t used) { return quota > used ? quota - used : 0; }

// Returns how much the capture itself may hold according to its spec; 0: it does not say.
uint64_t RequestedBytes(const CaptureSpec& spec) {
  return spec.mode == CaptureMode::kContinuous ? spec.retention.bytes
                                               : spec.budget.stored_bytes_max;
}

// One quota with what is used of it.
struct Limit {
  uint64_t quota = 0;
  uint64_t used = 0;
  std::string_view flag;
  std::string whose;  // "of job llama", "of the store"
};

// A continuous capture keeps itself within its retention, so only other captures of its job can
// leave it less than that. The eighth on top allows for chunks that have expired and are not
// deleted yet.
CaptureAllowance ForContinuous(const CaptureSpec& spec, const CaptureQuotas& quotas,
                               const StoreUse& use) {
  CaptureAllowance allowance;
  if (quotas.job_bytes == 0 || use.job.empty() || !use.own_bytes) return allowance;
  const uint64_t own = std::min(*use.own_bytes, use.job_bytes);
  allowance.bytes = Left(quotas.job_bytes, use.job_bytes - own) + spec.retention.bytes / 8;
  allowance.words = fmt::format("the rest of the quota of job {}, {} of {} (--quota-job-bytes)",
                                use.job, BytesText(Left(quotas.job_bytes, use.job_bytes - own)),
                                BytesText(quotas.job_bytes));
  return allowance;
}

}  // namespace

std::string BytesText(uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"kB", "MB", "GB", "TB", "PB"};
  if (bytes < 1'000) return fmt::format("{} B", bytes);
  double number = static_cast<double>(bytes) / 1'000;
  size_t unit = 0;
  // Above this the rounded number would have four digits.
  while (number >= 999.95 && unit + 1 < kUnits.size()) {
    number /= 1'000;
    ++unit;
  }
  return fmt::format("{:.1f} {}", number, kUnits[unit]);
}

absl::StatusOr<CaptureAllowance> Admit(const CaptureSpec& spec, const CaptureQuotas& quotas,
                                       const StoreUse& use) {
  CaptureAllowance allowance;
  if (spec.mode == CaptureMode::kFlightRecorder || spec.mode == CaptureMode::kPreview) {
    return allowance;
  }
  // In the order of the flags in the help. The first of equal limits is the one that messages name.
  const std::array<Limit, 3> limits = {
      Limit{quotas.capture_bytes, 0, "--quota-capture-bytes", "of each capture"},
      Limit{quotas.job_bytes, use.job.empty() ? 0 : use.job_bytes, "--quota-job-bytes",
            use.job.empty() ? "of each job" : "of job " + use.job},
      Limit{quotas.store_bytes, use.store_bytes, "--quota-store-bytes", "of the store"}};
  for (const Limit& limit : limits) {
    if (limit.quota == 0) continue;
    // Its own bytes do not reduce what the capture may hold in all.
    const uint64_t own = std::min(use.own_bytes.value_or(0), limit.used);
    const uint64_t left = Left(limit.quota, limit.used - own);
    if (left == 0 && !use.own_bytes) {
      // Only a capture that has not begun is refused. A running one gets an allowance that may be
      // less than what it has stored, and QuotaStopPolicy stops it.
      return ResourceExhausted(
          "the quota {} is exhausted: {} of {} are stored; delete captures or raise {} of the "
          "aggregator",
          limit.whose, BytesText(limit.used), BytesText(limit.quota), limit.flag);
    }
    if (RequestedBytes(spec) > left && !use.own_bytes) {
      return ResourceExhausted(
          "the capture may need {}, but the quota {} has {} left of {} ({} of the aggregator); "
          "request less, delete captures, or raise the quota",
          BytesText(RequestedBytes(spec)), limit.whose, BytesText(left), BytesText(limit.quota),
          limit.flag);
    }
    if (left >= allowance.bytes) continue;
    allowance = {left, fmt::format("the rest of the quota {}, {} of {} ({})", limit.whose,
                                   BytesText(left), BytesText(limit.quota), limit.flag)};
  }
  // The loop above only decides whether a continuous capture may begin.
  if (spec.mode == CaptureMode::kContinuous && spec.retention.bytes > 0)
    return ForContinuous(spec, quotas, use);
  if (spec.budget.stored_bytes_max > 0 && spec.budget.stored_bytes_max <= allowance.bytes) {
    allowance = {spec.budget.stored_bytes_max,
                 fmt::format("its limit of {}", BytesText(spec.budget.stored_bytes_max))};
  }
  return allowance;
}

}  // namespace neurontrace
