// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "aggregator/session/capture_observer.h"
#include "aggregator/store/store.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Deletes previews that have ended and that nobody has asked about for a minute: they hold nothing
// but their result, and whoever watches one has it deleted at once. Any thread; Reap waits for the
// disk, and nobody for Reap.
class PreviewReaper : public CaptureObserver {
 public:
  // Both outlive this.
  PreviewReaper(Store& store, const Clock& clock) : store_(store), clock_(clock) {}

  // Remembers the capture if it is a preview that has ended.
  void OnCaptureEnded(const CaptureRecord& record) override;
  // Deletes the previews whose time is over, and returns them.
  std::vector<CaptureId> Reap();

 private:
  Store& store_;
  const Clock& clock_;
  Mutex mutex_;
  std::map<CaptureId, uint64_t> due_ NT_GUARDED_BY(mutex_);  // monotonic
};

}  // namespace neurontrace
