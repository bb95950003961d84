// SPDX-License-Identifier: Apache-2.0
#include "aggregator/storage/store_quota.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <utility>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Commands that come in a burst share one reading.
constexpr uint64_t kCommandAgeNs = 100'000'000;

// How long after its end a capture's sums are taken as final. Late agents have mostly delivered by
// then; the little that they add later is counted after a restart.
constexpr uint64_t kSettledNs = 600'000'000'000;

}  // namespace

absl::StatusOr<StoreQuota::BytesByJob> StoreQuota::SumByJob() {
  std::map<CaptureId, BytesByJob> ended;
  BytesByJob sum;
  for (const CaptureId& id : store_.captures().Ids()) {
    // Ended captures that have settled are taken from memory. This keeps the cost proportional to
    // the running captures, not to the store.
    BytesByJob bytes;
    bool is_settled = true;
    if (const auto known = ended_.find(id); known != ended_.end()) {
      bytes = known->second;
    } else {
      const auto capture = store_.captures().Get(id);
      if (absl::IsNotFound(capture.status())) continue;  // deleted meanwhile
      RETURN_IF_ERROR(capture.status());
      ASSIGN_OR_RETURN(const auto streams, store_.OpenCapture(id).Streams());
      for (const StreamRecord& stream : streams) bytes[stream.job] += stream.bytes;
      is_settled =
          HasEnded(capture->state) && capture->ended_realtime_ns + kSettledNs < clock_.RealtimeNs();
    }
    for (const auto& [job, of_job] : bytes) sum[job] += of_job;
    if (is_settled) ended[id] = std::move(bytes);
  }
  ended_ = std::move(ended);  // without those that were deleted
  return sum;
}

absl::Status StoreQuota::Refresh(uint64_t age_max_ns) {
  if (quotas().job_bytes == 0) return absl::OkStatus();
  // Callers that arrive during a refresh wait and then find its result young enough.
  const MutexLock one_at_a_time(refresh_mutex_);
  const uint64_t now_ns = clock_.MonotonicNs();
  {
    const MutexLock lock(mutex_);
    if (by_job_ && now_ns < read_monotonic_ns_ + age_max_ns) return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(BytesByJob sum, SumByJob());
  const MutexLock lock(mutex_);
  by_job_ = std::move(sum);
  read_monotonic_ns_ = now_ns;
  return absl::OkStatus();
}

void StoreQuota::RefreshForCommand() {
  const absl::Status status = Refresh(kCommandAgeNs);
  if (!status.ok()) SPDLOG_WARN("{}", std::string(status.message()));
}

absl::StatusOr<CaptureAllowance> StoreQuota::Admit(const CaptureSpec& spec,
                                                   const std::set<std::string>& jobs,
                                                   std::optional<uint64_t> own_bytes) {
  const CaptureQuotas quotas = this->quotas();
  StoreUse use{.store_bytes = quotas.store_bytes == 0 ? 0 : store_.bytes(), .own_bytes = own_bytes};
  if (quotas.job_bytes == 0) return neurontrace::Admit(spec, quotas, use);
  // Called on the coordinator's sequence, which should not wait for the disk. The periodic refresh
  // keeps the result recent.
  RETURN_IF_ERROR(Refresh(UINT64_MAX / 2));  // reads only if that was never done
  std::set<std::string> asked = jobs;
  if (!spec.selection.job.empty()) asked.insert(spec.selection.job);
  {
    const MutexLock lock(mutex_);
    for (const std::string& job : asked) {
      const auto it = by_job_->find(job);
      // A job without an entry has stored nothing.
      const uint64_t of_job = it == by_job_->end() ? 0 : it->second;
      if (!use.job.empty() && of_job <= use.job_bytes) continue;
      use.job = job;
      use.job_bytes = of_job;
    }
  }
  return neurontrace::Admit(spec, quotas, use);
}

uint64_t StoreQuota::StoredBytes(const CaptureId& id) const {
  return usage_.CaptureBytes(id).value_or(0);
}

}  // namespace neurontrace
