// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/store/chunk_index_entry.h"
#include "aggregator/store/database.h"
#include "aggregator/store/stream_record.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Whether a chunk cannot be read, however often, or is gone though the index names it. Errors of
// reading the index.
absl::StatusOr<bool> IsDamaged(const Database& database, const CaptureId& capture, uint32_t stream,
                               uint64_t sequence);

// Removes a chunk with its index entry, and turns what the index says of it into a loss in
// `record`, in one synced write. Changes `record` only if that succeeds.
absl::Status RemoveDamaged(Database& database, const CaptureId& capture, uint64_t sequence,
                           StreamRecord& record);

}  // namespace neurontrace
