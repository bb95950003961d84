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

// What a delivery stands on; all of it outlives the call.
struct DeliveryDeps {
  const Store& store;
  const ExportRoots& roots;
  const StoreIncarnation& run;
  const Clock& clock;
  Random& random;
};

// Writes a capture that has ended to the request's destination, by docs/formats/shared_volume.md:
// its artifacts, each of the formats, and what is said of each worker. Tells progress, and `done`
// at the end, through `write`. Blocks as long as that takes. What it had written when it ends early
// is gone on with by the same request. Errors of ExportStoredCapture; FAILED_PRECONDITION for a
// capture that goes on and for a destination outside the roots; UNAVAILABLE while another export
// writes there.
absl::Status DeliverStoredCapture(const DeliveryDeps& deps, const CaptureRecord& record,
                                  const v1::ExportRequest& request, const CaptureClocks& clocks,
                                  const ExportWriter& write);

}  // namespace neurontrace
