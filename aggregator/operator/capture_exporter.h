// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "lib/trace/capture_record.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

// Sends one reply of an export; returns false if nobody listens any more.
using ExportWriter = std::function<bool(const v1::ExportReply&)>;

// Exports captures for operators and for standing exports. Any thread.
class CaptureExporter {
 public:
  virtual ~CaptureExporter() = default;

  // Exports a capture through `write`, `done` included. Blocks as long as that takes. Fails with
  // UNAVAILABLE if a destination is not there now.
  virtual absl::Status ExportCapture(const CaptureRecord& record, const v1::ExportRequest& request,
                                     const ExportWriter& write) = 0;
};

}  // namespace neurontrace
