// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "aggregator/store/clock_evidence_store.h"
#include "aggregator/store/stream_record.h"
#include "trace/capture_record.h"

namespace neurontrace {

// From when to when there can be events of a capture, by the aggregator's REALTIME: from its start
// to its end, or to now. Of a continuous one, which can be weeks old, from the oldest that its
// retention has left: what was measured of clocks before that is not needed any more. Pure.
RealtimeWindow SpanOf(const CaptureRecord& record, std::span<const StreamRecord> streams,
                      uint64_t now_realtime_ns);

}  // namespace neurontrace
