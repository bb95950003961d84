// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/export/output_files.h"
#include "aggregator/operator/capture_exporter.h"
#include "aggregator/store/store.h"
#include "lib/trace/capture_record.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

// The files of an export, and how much has come of all of them.
class ExportFiles : public OutputFiles {
 public:
  virtual uint64_t bytes_sent() const = 0;
};

// Exports a capture as an operator asked for: checks the request, reads the store, maps times
// through `clocks`, writes `files`, and tells progress, and `done` at the end. Blocks as long as
// that takes. INVALID_ARGUMENT names the field that makes no sense; CANCELLED when nobody listens
// any more.
absl::Status ExportStoredCapture(const Store& store, const CaptureRecord& record,
                                 const v1::ExportRequest& request, const CaptureClocks& clocks,
                                 ExportFiles& files, const ExportWriter& write);

}  // namespace neurontrace
