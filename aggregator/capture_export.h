// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "aggregator/align/capture_clocks.h"
#include "aggregator/operator/operator_service.h"
#include "aggregator/store/store.h"
#include "neurontrace/v1/operator_service.pb.h"
#include "trace/capture_record.h"

namespace neurontrace {

// Exports a capture as an operator asked for: checks the request, reads the store, maps times
// through `clocks`, sends the file in pieces among words of progress, and `done` at the end. Blocks
// as long as that takes. INVALID_ARGUMENT names the field that makes no sense; CANCELLED when
// nobody listens any more.
absl::Status ExportStoredCapture(const Store& store, const CaptureRecord& record,
                                 const v1::ExportRequest& request, const CaptureClocks& clocks,
                                 const ExportWriter& write);

}  // namespace neurontrace
