// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/capture_watch.h"

namespace neurontrace {

void CaptureWatch::OnCaptureChanged(const CaptureRecord&) {
  {
    const std::lock_guard lock(mutex_);
    ++version_;
  }
  changed_.notify_all();
}

uint64_t CaptureWatch::version() const {
  const std::lock_guard lock(mutex_);
  return version_;
}

void CaptureWatch::WaitBeyond(uint64_t version, std::chrono::milliseconds patience) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [&] { return version_ > version; });
}

}  // namespace neurontrace
