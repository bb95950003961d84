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

// Adds the clocks that the events of a capture reveal. Works on the calling thread, which it blocks
// while it reads; keeps no state.
//
// Adds the clocks of its devices to clocks.devices and clocks.maps: one for each physical core that
// any event names, or for a logical core whose events name none. A core about which nothing is
// known gets an entry, too, with a finding that says so.
//
// Reads every chunk of the cores once. Holds one chunk and the evidence of one logical core at a
// time, at most about 10 MB for each of its physical cores (lib/trace/clock_limits.h). Device
// clocks are fitted against the host's REALTIME and do not depend on the hosts' models.
//
// Adds to clocks.order whether collectives and barriers of several instances appear in a possible
// order; the instances' clocks have to be in clocks.instances already. Uses about 100 MB at most.
// Only reads chunks with events in `window`, in reference time. Fails with the error of the store.
absl::Status AddEventClocks(const CaptureReader& reader, const std::vector<StreamRecord>& streams,
                            const OrderClasses& order, CaptureClocks& clocks,
                            const RealtimeWindow& window = {});

}  // namespace neurontrace
