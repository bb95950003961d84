// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/capture_updater.h"

#include "lib/base/status.h"
#include "lib/trace/capture_spec.h"

namespace neurontrace {
namespace {

// A preview is deleted without a claim as soon as its result was read.
absl::Status CheckIsKept(const CaptureRecord& record) {
  if (record.spec.mode != CaptureMode::kPreview) return absl::OkStatus();
  return FailedPrecondition("capture {} is a preview, which is not kept", record.id.ToString());
}

}  // namespace

absl::StatusOr<CaptureRecord> CaptureUpdater::Update(const CaptureId& id,
                                                     const CaptureUpdate& update) const {
  // Held to the end, so that the record of a deleted capture is not written again.
  const auto lease = deps_.leases.Take(id);
  if (lease == nullptr) return FailedPrecondition("capture {} is being deleted", id.ToString());
  return deps_.sessions.Run([&](Coordinator& coordinator) -> absl::StatusOr<CaptureRecord> {
    if (const CaptureRecord* const tracked = coordinator.Find(id); tracked != nullptr) {
      RETURN_IF_ERROR(CheckIsKept(*tracked));
      return coordinator.UpdateCapture(id, update);
    }
    // Nobody but this function changes the record of an ended capture that awaits no agent.
    ASSIGN_OR_RETURN(CaptureRecord record, deps_.store.captures().Get(id));
    RETURN_IF_ERROR(CheckIsKept(record));
    ASSIGN_OR_RETURN(const bool has_changed, update.ApplyTo(record));
    if (has_changed) RETURN_IF_ERROR(deps_.store.captures().Put(record, /*durable=*/true));
    return record;
  });
}

}  // namespace neurontrace
