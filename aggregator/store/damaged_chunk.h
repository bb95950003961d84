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

// Returns whether a chunk is damaged: reading it fails with DATA_LOSS, its frame is not valid, or
// it is missing although the index names it. Fails with the error of reading the index. Any thread;
// blocks for the disk.
absl::StatusOr<bool> IsDamaged(const Database& database, const CaptureId& capture, uint32_t stream,
                               uint64_t sequence);

// Removes a chunk and its index entry, and adds a loss with the entry's events and times to
// `record`, in one synced write. Changes `record` only if that succeeds. Any thread, which it
// blocks; the caller makes sure that nothing else writes the stream meanwhile.
absl::Status RemoveDamaged(Database& database, const CaptureId& capture, uint64_t sequence,
                           StreamRecord& record);

}  // namespace neurontrace
