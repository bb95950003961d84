// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "lib/base/mutex.h"

#include "aggregator/session/capture_observer.h"

namespace neurontrace {

// Wakes the calls that watch captures when any capture has changed. Any thread; changes come on the
// coordinator's sequence.
class CaptureWatch : public CaptureObserver {
 public:
  // Counts a change of any capture and wakes all waiting calls. Each of them looks at its own
  // capture.
  void OnCaptureChanged(const CaptureRecord&) override;

  // Returns the number of changes so far.
  uint64_t version() const;
  // Blocks until there were more than `version` changes, or for `patience`. Read version before the
  // state that is shown, so that no change in between is missed.
  void WaitBeyond(uint64_t version, std::chrono::milliseconds patience) const;

 private:
  // Held for moments only, so the sequence never waits for a watching call.
  mutable Mutex mutex_;
  mutable CondVar changed_;
  uint64_t version_ NT_GUARDED_BY(mutex_) = 0;
};

}  // namespace neurontrace
