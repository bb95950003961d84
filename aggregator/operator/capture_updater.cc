// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/capture_updater.h"

#include <fmt/format.h>

#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/trace/capture_spec.h"

namespace neurontrace {
namespace {

// A preview is deleted without a claim as soon as its result was read.
absl::Status CheckIsKept(const CaptureRecord& record) {
  if (record.spec.mode != CaptureMode::kPreview) return absl::OkStatus();
  return FailedPrecondition("capture {} is a preview, which is not kept", record.id.ToString());
}

// Returns whether less is kept than before. 0 is no limit.
bool IsShorter(uint64_t retention_ns, uint64_t than_ns) {
  return retention_ns != 0 && (than_ns == 0 || retention_ns < than_ns);
}

}  // namespace

absl::Status CaptureUpdater::CheckChange(const CaptureRecord& record, const CaptureUpdate& update,
                                         const Caller& caller) const {
  RETURN_IF_ERROR(CheckIsKept(record));
  const uint64_t now_kept_ns = record.spec.retention.duration_ns;
  if (!update.retention_ns || !IsShorter(*update.retention_ns, now_kept_ns)) {
    return absl::OkStatus();
  }
  if (caller.role < Role::kAdmin) {
    return absl::PermissionDeniedError(
        fmt::format("'{}' has the role {}; a shorter retention deletes, and needs admin",
                    caller.name, ToString(caller.role)));
  }
  if (record.spec.mode == CaptureMode::kContinuous || !HasEnded(record.state)) {
    return absl::OkStatus();
  }
  // Most likely somebody counts from now; the retention counts from the end.
  const uint64_t ended_ns = LatestMomentNs(record), now_ns = deps_.clock.RealtimeNs();
  if (AddSaturating(ended_ns, *update.retention_ns) > now_ns) return absl::OkStatus();
  return FailedPrecondition(
      "capture {} ended {} ago and would be deleted at once; choose a longer time, which counts "
      "from its end, or delete it",
      record.id.ToString(), FormatSeconds(SubtractSaturating(now_ns, ended_ns)));
}

absl::StatusOr<CaptureRecord> CaptureUpdater::Update(const CaptureId& id,
                                                     const CaptureUpdate& update,
                                                     const Caller& caller) const {
  // Held to the end, so that the record of a deleted capture is not written again.
  const auto lease = deps_.leases.Take(id);
  if (lease == nullptr) return FailedPrecondition("capture {} is being deleted", id.ToString());
  const auto change = [&](Coordinator& coordinator) -> absl::StatusOr<CaptureRecord> {
    if (const CaptureRecord* const tracked = coordinator.Find(id); tracked != nullptr) {
      RETURN_IF_ERROR(CheckChange(*tracked, update, caller));
      return coordinator.UpdateCapture(id, update);
    }
    // Nobody but this function changes the record of an ended capture that awaits no agent.
    ASSIGN_OR_RETURN(CaptureRecord record, deps_.store.captures().Get(id));
    RETURN_IF_ERROR(CheckChange(record, update, caller));
    ASSIGN_OR_RETURN(const bool has_changed, update.ApplyTo(record));
    if (has_changed) RETURN_IF_ERROR(deps_.store.captures().Put(record, /*durable=*/true));
    return record;
  };
  absl::StatusOr<CaptureRecord> record = deps_.sessions.Run(change);
  if (record.ok() && update.retention_ns) deps_.changed_retentions.Add(id);
  return record;
}

}  // namespace neurontrace
