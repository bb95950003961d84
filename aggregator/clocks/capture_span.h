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

// Returns the interval in which events of a capture can lie, by the aggregator's REALTIME: from its
// start to its end, or to now. A continuous capture can be weeks old; its span begins with the
// oldest event that retention has left, as earlier clock evidence is no longer needed. Pure.
RealtimeWindow SpanOf(const CaptureRecord& record, std::span<const StreamRecord> streams,
                      uint64_t now_realtime_ns);

// The last event of each machine of a capture, by that machine's own REALTIME in ns.
using LastEvents = std::map<HostBoot, uint64_t>;
// Reads the stream records of the capture. Fails with the error of the store. A stream on a clock
// of its own is skipped, and a machine without any event has 0.
absl::StatusOr<LastEvents> LastEventsOf(const Store& store, const CaptureRecord& record);

// Returns whether the stored evidence of a capture's machines reaches as far as its events do.
// Later evidence improves the models, but nothing has to be extrapolated any more. A machine
// without any evidence is not waited for. Reads little of each machine. Fails with the error of the
// store. Any thread.
absl::StatusOr<bool> EvidenceReaches(const ClockEvidenceStore& store, const LastEvents& events);

}  // namespace neurontrace
