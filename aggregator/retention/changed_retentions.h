// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "lib/base/mutex.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Hands captures whose retention was changed to the next pass of CaptureRetention, which otherwise
// remembers when each capture is due. Holds each capture once, so at most as many as are stored.
// Any thread; never waits.
class ChangedRetentions {
 public:
  // Called after the new record is stored.
  void Add(const CaptureId& capture) {
    const MutexLock lock(mutex_);
    captures_.insert(capture);
  }
  // Returns what was added since the last call.
  std::set<CaptureId> Take() {
    const MutexLock lock(mutex_);
    std::set<CaptureId> taken;
    taken.swap(captures_);
    return taken;
  }

 private:
  Mutex mutex_;
  std::set<CaptureId> captures_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
