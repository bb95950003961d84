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
#include "aggregator/store/store_usage.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Computes how much captures may store, from the quotas and from what is stored. Any thread. Only
// Refresh reads the stream records; the other functions use its last result.
class StoreQuota : public StorageQuota {
 public:
  // Starts without quotas; see Set. Both must outlive this.
  StoreQuota(Store& store, const Clock& clock) : store_(store), usage_(store), clock_(clock) {}
  // Applies to every answer from now on.
  void Set(const CaptureQuotas& quotas) {
    const MutexLock lock(mutex_);
    quotas_ = quotas;
  }

  // Reads how much each job has stored, unless the last result is younger than `age_max_ns` or jobs
  // have no quota. Fails with the store's error; the earlier result then remains in use.
  absl::Status Refresh(uint64_t age_max_ns);

  // Refreshes before an operator's command to start a capture, which is decided by what is stored
  // now or was 100 ms ago. Logs a failure.
  void RefreshForCommand();

  // Returns how much a capture may store, see neurontrace::Admit. Of several jobs the one with the
  // most stored bytes decides. Reads the store if it was never read, and fails with its error.
  absl::StatusOr<CaptureAllowance> Admit(const CaptureSpec& spec, const std::set<std::string>& jobs,
                                         std::optional<uint64_t> own_bytes) override;
  // Returns the stored bytes of a capture; 0 if they cannot be read.
  uint64_t StoredBytes(const CaptureId& id) const override;
  // Returns the free bytes of the disk; 0 if unknown.
  uint64_t FreeBytes() const { return usage_.FreeBytes().value_or(0); }
  bool HasRoom() const override {
    const uint64_t most = quotas().store_bytes;
    return most == 0 || store_.bytes() < most;
  }

 private:
  using BytesByJob = std::map<std::string, uint64_t>;
  // Reads the stream records of all captures that are not known to be final. Fails with the store's
  // error.
  absl::StatusOr<BytesByJob> SumByJob() NT_REQUIRES(refresh_mutex_);
  CaptureQuotas quotas() const {
    const MutexLock lock(mutex_);
    return quotas_;
  }

  const Store& store_;
  const StoreUsage usage_;
  const Clock& clock_;
  Mutex refresh_mutex_;  // one refresh at a time; locked before mutex_
  // Final sums of captures that have ended, so that only those that change are read again.
  std::map<CaptureId, BytesByJob> ended_ NT_GUARDED_BY(refresh_mutex_);  // final
  mutable Mutex mutex_;
  // The last result of SumByJob.
  std::optional<BytesByJob> by_job_ NT_GUARDED_BY(mutex_);  // nullopt: never read
  uint64_t read_monotonic_ns_ NT_GUARDED_BY(mutex_) = 0;
  CaptureQuotas quotas_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
