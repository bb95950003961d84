// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "lib/trace/capture_record.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

// Sends one reply of an export. Returns false once nobody receives replies any more; the export
// then ends.
using ExportWriter = std::function<bool(const v1::ExportReply&)>;

// Exports captures for operators and for standing exports. Any thread. An interface because
// aggregator/exports, which implements it, depends on this folder.
class CaptureExporter {
 public:
  virtual ~CaptureExporter() = default;

  // Exports a capture through `write`, including the final reply. Blocks until it is done. Fails
  // with UNAVAILABLE if a destination is not available at present.
  virtual absl::Status ExportCapture(const CaptureRecord& record, const v1::ExportRequest& request,
                                     const ExportWriter& write) = 0;
};

}  // namespace neurontrace
