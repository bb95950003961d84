// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/capture_watch.h"

namespace neurontrace {

// Notifies without the lock, so that woken threads do not block on it at once.
void CaptureWatch::OnCaptureChanged(const CaptureRecord&) {
  {
    const MutexLock lock(mutex_);
    ++version_;
  }
  changed_.NotifyAll();
}

uint64_t CaptureWatch::version() const {
  const MutexLock lock(mutex_);
  return version_;
}

// Returns after a change or after `patience`; callers read the state again in either case.
void CaptureWatch::WaitBeyond(uint64_t version, std::chrono::milliseconds patience) const {
  const MutexLock lock(mutex_);
  changed_.WaitFor(mutex_, patience,
                   [this, version]() NT_REQUIRES(mutex_) { return version_ > version; });
}

}  // namespace neurontrace
