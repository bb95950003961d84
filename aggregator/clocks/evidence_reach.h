// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "aggregator/store/store.h"
#include "trace/capture_record.h"

namespace neurontrace {

// Whether what is stored about the clocks of a capture's machines reaches as far as its events do:
// what comes later makes models better, but nothing has to be continued beyond what was seen. Of a
// machine without any evidence there is nothing to wait for. Reads little of each machine. Errors
// of the store. Any thread.
absl::StatusOr<bool> EvidenceReachesEnd(const Store& store, const CaptureRecord& record);

}  // namespace neurontrace
