// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "lib/base/mutex.h"

#include "aggregator/session/capture_observer.h"

namespace neurontrace {

// Wakes the calls that watch captures when one has changed. Any thread.
class CaptureWatch : public CaptureObserver {
 public:
  void OnCaptureChanged(const CaptureRecord&) override;

  // Returns how many changes there were.
  uint64_t version() const;
  // Returns when there were more changes than `version`, or after `patience`.
  void WaitBeyond(uint64_t version, std::chrono::milliseconds patience) const;

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  uint64_t version_ NT_GUARDED_BY(mutex_) = 0;
};

}  // namespace neurontrace
