// SPDX-License-Identifier: Apache-2.0
#include "aggregator/retention/preview_reaper.h"

#include "lib/trace/capture_limits.h"

namespace neurontrace {

void PreviewReaper::OnCaptureEnded(const CaptureRecord& record) {
  if (record.spec.mode != CaptureMode::kPreview || !HasEnded(record.state)) return;
  const MutexLock lock(mutex_);
  // A later change of the ended record does not extend its time.
  due_.try_emplace(record.id, clock_.MonotonicNs() + limits::kPreviewKeptNs);
}

// A preview may have been deleted by the command that showed it; NOT_FOUND therefore counts as
// done.
std::vector<CaptureId> PreviewReaper::Reap() {
  std::vector<CaptureId> reaped;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, due_ns] : due_) {
      if (clock_.MonotonicNs() >= due_ns) reaped.push_back(id);
    }
  }
  // Without the lock: deleting takes long, and the sequence must not wait for it.
  std::erase_if(reaped, [this](const CaptureId& id) {
    const auto deleted = store_.DeleteCapture(id);
    const bool is_gone = deleted.ok() || absl::IsNotFound(deleted.status());
    const MutexLock lock(mutex_);
    if (is_gone) {
      due_.erase(id);
    } else {
      due_[id] = clock_.MonotonicNs() + limits::kPreviewKeptNs;
    }
    return !is_gone;
  });
  return reaped;
}

}  // namespace neurontrace
