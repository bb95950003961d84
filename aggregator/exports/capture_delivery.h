// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/deliver/export_roots.h"
#include "aggregator/operator/capture_exporter.h"
#include "aggregator/store/store.h"
#include "aggregator/store/store_incarnation.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/trace/capture_record.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

// What a delivery uses. All of it must outlive the call.
struct DeliveryDeps {
  const Store& store;
  const std::string store_problem;  // see ExportStoredCapture
  const ExportRoots& roots;
  const StoreIncarnation& run;
  // For the leases of claims, which other machines compare with their own clocks.
  const Clock& clock;
  // For the nonce that distinguishes this attempt from earlier ones.
  Random& random;
};

// Writes a capture that has ended to the request's destination as docs/formats/shared_volume.md
// defines it: its artifacts, each of the formats, and a description of each worker. Reports
// progress, and `done` at the end, through `write`, on the calling thread; blocks until everything
// is written. If it ends early, the same request later continues where it stopped.
//
// Fails as ExportStoredCapture does, with FAILED_PRECONDITION for a capture that is still recording
// or a destination outside the roots, and with UNAVAILABLE while another export writes there.
// Called by ExportService with a lease on the capture. `write` must outlive the call only.
absl::Status DeliverStoredCapture(const DeliveryDeps& deps, const CaptureRecord& record,
                                  const v1::ExportRequest& request, const CaptureClocks& clocks,
                                  const ExportWriter& write);

}  // namespace neurontrace
