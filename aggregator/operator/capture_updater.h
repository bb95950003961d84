// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "aggregator/operator/session_sequence.h"
#include "aggregator/retention/export_leases.h"
#include "aggregator/session/capture_update.h"
#include "aggregator/store/store.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Changes the name, the star and the tags of captures, whether the coordinator tracks them or only
// the store has them. Any thread; waits for the coordinator's sequence and the disk. All changes
// are made on that sequence, one after the other, so that none is lost.
class CaptureUpdater {
 public:
  // All of them must outlive this.
  struct Deps {
    const SessionSequence& sessions;
    Store& store;
    ExportLeases& leases;
  };
  explicit CaptureUpdater(const Deps& deps) : deps_(deps) {}

  // Changes a capture and returns its record, synced. Requires CaptureUpdate::Check. Fails with
  // NOT_FOUND if there is no such capture, with FAILED_PRECONDITION while it is being deleted, for
  // a preview, which is not kept, and as CaptureUpdate::ApplyTo does, and with the store's error.
  absl::StatusOr<CaptureRecord> Update(const CaptureId& id, const CaptureUpdate& update) const;

 private:
  const Deps deps_;
};

}  // namespace neurontrace
