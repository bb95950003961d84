// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/store/database.h"
#include "aggregator/store/store_check.h"
#include "aggregator/store/stream_record.h"
#include "trace/ids.h"

namespace neurontrace {

// What a repair has booked as lost: place store, reason malformed.
struct StreamLoss {
  uint64_t chunks = 0;
  uint64_t events = 0;
};

// Makes a stream whole again out of its chunks: index entries and record are what they give. Chunks
// that cannot be read, or that `examine` finds damaged, go. What `known`, the stream's record from
// before, counts and no chunk holds any more is booked as lost; without it the accounts in the
// chunks tell. One write for each so many chunks, none synced. Nobody else writes to the stream.
absl::StatusOr<StreamLoss> RepairStream(Database& database, const CaptureId& capture,
                                        uint32_t stream, const std::optional<StreamRecord>& known,
                                        const ExamineChunk& examine);

// Looks, by the index alone, whether all events that the stream's record counts are there.
absl::StatusOr<bool> IsStreamWhole(const Database& database, const CaptureId& capture,
                                   const StreamRecord& record);

}  // namespace neurontrace
