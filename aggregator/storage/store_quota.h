// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/session/capture_quota.h"
#include "aggregator/session/session_environment.h"
#include "aggregator/store/store.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Computes how much captures may store from the quotas and from what is stored. Any thread. Refresh
// alone reads the store; the other functions answer from what it found last.
class StoreQuota : public StorageQuota {
 public:
  // Both outlive this.
  StoreQuota(Store& store, const Clock& clock) : store_(store), usage_(store), clock_(clock) {}
  // Counts from the next question on.
  void Set(const CaptureQuotas& quotas) {
    const MutexLock lock(mutex_);
    quotas_ = quotas;
  }

  // Reads what each job has stored, unless that is younger than `age_max_ns`, or jobs have no
  // quota. Errors of the store; what was known before then counts further.
  absl::Status Refresh(uint64_t age_max_ns);

  // See neurontrace::Admit; of several jobs the one that has the least left counts. Errors of the
  // store where it was never read.
  absl::StatusOr<CaptureAllowance> Admit(const CaptureSpec& spec, const std::set<std::string>& jobs,
                                         std::optional<uint64_t> own_bytes) override;
  // Returns 0 if that cannot be read.
  uint64_t StoredBytes(const CaptureId& id) const override;
  uint64_t FreeBytes() const { return usage_.FreeBytes().value_or(0); }  // of the disk; the same
  bool HasRoom() const override {
    const uint64_t most = quotas().store_bytes;
    return most == 0 || store_.bytes() < most;
  }

 private:
  using BytesByJob = std::map<std::string, uint64_t>;
  absl::StatusOr<BytesByJob> SumByJob() NT_REQUIRES(refresh_mutex_);
  CaptureQuotas quotas() const {
    const MutexLock lock(mutex_);
    return quotas_;
  }

  const Store& store_;
  const StoreUsage usage_;
  const Clock& clock_;
  Mutex refresh_mutex_;
  std::map<CaptureId, BytesByJob> ended_ NT_GUARDED_BY(refresh_mutex_);  // final
  mutable Mutex mutex_;
  std::optional<BytesByJob> by_job_ NT_GUARDED_BY(mutex_);  // nothing: never read
  uint64_t read_monotonic_ns_ NT_GUARDED_BY(mutex_) = 0;
  CaptureQuotas quotas_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
