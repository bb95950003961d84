// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "aggregator/access/role.h"
#include "aggregator/operator/session_sequence.h"
#include "aggregator/retention/changed_retentions.h"
#include "aggregator/retention/export_leases.h"
#include "aggregator/session/capture_update.h"
#include "aggregator/store/store.h"
#include "lib/base/clock.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Changes the name, the star, the tags and the retention of captures, whether the coordinator
// tracks them or only the store has them. Any thread; waits for the coordinator's sequence and the
// disk. All changes are made on that sequence, one after the other, so that none is lost.
class CaptureUpdater {
 public:
  // All of them must outlive this.
  struct Deps {
    const SessionSequence& sessions;
    Store& store;
    ExportLeases& leases;
    ChangedRetentions& changed_retentions;
    const Clock& clock;
  };
  explicit CaptureUpdater(const Deps& deps) : deps_(deps) {}

  // Changes a capture and returns its record, synced. Requires CaptureUpdate::Check. Fails with
  // NOT_FOUND if there is no such capture, with FAILED_PRECONDITION while it is being deleted, for
  // a preview, which is not kept, and as CaptureUpdate::ApplyTo does, and with the store's error.
  // A shorter retention deletes: it fails with PERMISSION_DENIED unless the caller may delete, and
  // with FAILED_PRECONDITION if nothing would be left of an ended capture.
  absl::StatusOr<CaptureRecord> Update(const CaptureId& id, const CaptureUpdate& update,
                                       const Caller& caller) const;

 private:
  absl::Status CheckChange(const CaptureRecord& record, const CaptureUpdate& update,
                           const Caller& caller) const;

  const Deps deps_;
};

}  // namespace neurontrace
