// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/store/chunk_index_entry.h"
#include "aggregator/store/database.h"
#include "aggregator/store/stream_record.h"
#include "trace/ids.h"

namespace neurontrace {

// Whether a chunk is there and cannot be read, however often.
bool IsDamaged(const Database& database, const CaptureId& capture, uint32_t stream,
               uint64_t sequence);

// Removes a chunk with its index entry, and makes of what the index says of it a loss in `record`,
// in one synced write. `record` has changed only when that succeeded.
absl::Status RemoveDamaged(Database& database, const CaptureId& capture, uint64_t sequence,
                           StreamRecord& record);

}  // namespace neurontrace
