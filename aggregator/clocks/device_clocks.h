// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "aggregator/align/capture_clocks.h"
#include "aggregator/store/capture_reader.h"
#include "aggregator/store/stream_record.h"

namespace neurontrace {

// The clocks of the devices of a capture, out of its events: one for each physical core that any
// event names, or for a logical core none of whose events names one. Put to clocks.devices and
// clocks.maps, also where nothing can be said of a core, which its findings then tell.
//
// Reads every chunk of the cores once, and holds no more than one chunk and the evidence of one
// logical core at a time: some 10 MB for each of its physical cores at the most
// (trace/clock_limits.h). What a fit finds does not depend on the host's clocks. Errors of the
// store.
absl::Status AddDeviceClocks(const CaptureReader& reader, const std::vector<StreamRecord>& streams,
                             CaptureClocks& clocks);

}  // namespace neurontrace
