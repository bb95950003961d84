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

// Deletes ended previews about which nobody has asked for a minute. They contain nothing but their
// result, and the command that shows one deletes it at once. OnCaptureEnded comes on the
// coordinator's sequence, at the start also for previews of earlier runs. Reap waits for the disk
// and is called on another thread.
class PreviewReaper final : public CaptureObserver {
 public:
  // Both must outlive this.
  PreviewReaper(Store& store, const Clock& clock) : store_(store), clock_(clock) {}

  // Remembers the record if it is an ended preview.
  void OnCaptureEnded(const CaptureRecord& record) override;
  // Deletes the previews that are due, and returns their ids. One that cannot be deleted is tried
  // again.
  std::vector<CaptureId> Reap();

 private:
  Store& store_;
  const Clock& clock_;
  Mutex mutex_;
  // When each is to be deleted.
  std::map<CaptureId, uint64_t> due_ NT_GUARDED_BY(mutex_);  // monotonic
};

}  // namespace neurontrace
