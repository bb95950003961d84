// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "absl/status/statusor.h"
#include "aggregator/store/clock_evidence_store.h"
#include "aggregator/store/store.h"
#include "aggregator/store/stream_record.h"
#include "lib/trace/capture_record.h"

namespace neurontrace {

// From when to when there can be events of a capture, by the aggregator's REALTIME: from its start
// to its end, or to now. Of a continuous one, which can be weeks old, from the oldest that its
// retention has left: what was measured of clocks before that is not needed any more. Pure.
RealtimeWindow SpanOf(const CaptureRecord& record, std::span<const StreamRecord> streams,
                      uint64_t now_realtime_ns);

// When each machine of a capture had its last event, by its own REALTIME.
using LastEvents = std::map<HostBoot, uint64_t>;
absl::StatusOr<LastEvents> LastEventsOf(const Store& store, const CaptureRecord& record);

// Whether what is stored about the clocks of a capture's machines reaches as far as its events do:
// what comes later makes models better, but nothing has to be continued beyond what was seen. Of a
// machine without any evidence there is nothing to wait for. Reads little of each machine. Errors
// of the store. Any thread.
absl::StatusOr<bool> EvidenceReaches(const ClockEvidenceStore& store, const LastEvents& events);

}  // namespace neurontrace
