// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "aggregator/align/capture_clocks.h"
#include "aggregator/store/stream_record.h"

namespace neurontrace {

// Ends the window of a capture's clocks with the last of its events, and has the clocks say the
// bounds of that: what comes after, until everybody has told that all is delivered, is nobody's
// concern, and known worst as long as nothing later was measured. Without an event whose clock is
// known everything stays as it is.
void EndWithEvents(const std::vector<StreamRecord>& streams, CaptureClocks& clocks);

}  // namespace neurontrace
