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
// but their result, and the command that shows one deletes it at once. Any thread; Reap waits for
// the disk, and nothing waits for Reap.
class PreviewReaper final : public CaptureObserver {
 public:
  // Both outlive this.
  PreviewReaper(Store& store, const Clock& clock) : store_(store), clock_(clock) {}

  // Remembers the record if it is a preview that has ended.
  void OnCaptureEnded(const CaptureRecord& record) override;
  // Deletes the previews that are due, and returns which.
  std::vector<CaptureId> Reap();

 private:
  Store& store_;
  const Clock& clock_;
  Mutex mutex_;
  std::map<CaptureId, uint64_t> due_ NT_GUARDED_BY(mutex_);  // monotonic
};

}  // namespace neurontrace
