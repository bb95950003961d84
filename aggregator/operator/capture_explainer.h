// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "lib/trace/capture_record.h"
#include "neurontrace/v1/insight.pb.h"

namespace neurontrace {

// Follows the reading of a capture that is explained. Called on the thread of that call.
class ExplainObserver {
 public:
  virtual ~ExplainObserver() = default;
  // Called now and then with how much of the window has been read. Returns false to end early.
  virtual bool OnRead(uint64_t chunks_read, uint64_t chunks_total) = 0;
};

// Says which ranks of a capture are slow or hung, and why. Any thread. An interface because
// aggregator/view, which implements it, depends on folders that depend on this one.
class CaptureExplainer {
 public:
  virtual ~CaptureExplainer() = default;

  // Returns the answer for the window and job of the request, whose capture is that of the record.
  // Blocks until the window is read or the observer ends it; it may be null. Fails with
  // INVALID_ARGUMENT for an unacceptable request, with NOT_FOUND for a job that the capture does
  // not have, with CANCELLED, and with errors of the store.
  virtual absl::StatusOr<v1::InsightReport> Explain(const CaptureRecord& record,
                                                    const v1::ExplainRequest& request,
                                                    ExplainObserver* observer) = 0;
};

}  // namespace neurontrace
