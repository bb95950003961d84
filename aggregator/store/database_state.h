// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// How RocksDB does, by what it says of itself; docs/metrics.md has the words. A plain value.
struct DatabaseState {
  uint64_t memtable_bytes = 0;
  uint64_t blob_garbage_bytes = 0;
  uint64_t compaction_pending_bytes = 0;
  uint64_t background_errors = 0;  // since it was opened
  bool write_stalled = false;      // writers wait, or are slowed down
};

}  // namespace neurontrace
