// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/clocks/order_checker.h"
#include "aggregator/store/capture_reader.h"
#include "aggregator/store/clock_evidence_store.h"
#include "aggregator/store/stream_record.h"

namespace neurontrace {

// What the events of a capture report its clocks.
//
// The clocks of its devices: one for each physical core that any
// event names, or for a logical core none of whose events names one. Put to clocks.devices and
// clocks.maps, also where nothing can be said of a core, which its findings then tell.
//
// Reads every chunk of the cores once, and holds no more than one chunk and the evidence of one
// logical core at a time: some 10 MB for each of its physical cores at most
// (lib/trace/clock_limits.h). What a fit finds does not depend on the host's clocks.
//
// And whether collectives and barriers of several instances, whose clocks are in clocks.instances
// already, are shown in an order that they can have had: put to clocks.order. Some 100 MB at
// most. Only of chunks with events in `window`, by the reference. Errors of the store.
absl::Status AddEventClocks(const CaptureReader& reader, const std::vector<StreamRecord>& streams,
                            const OrderClasses& order, CaptureClocks& clocks,
                            const RealtimeWindow& window = {});

}  // namespace neurontrace
