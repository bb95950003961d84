// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// The records of a run of consecutive events of one chunk, in the order of their start: what a
// timeline holds in memory of a chunk that it is in the midst of. Batches share in its ownership.
struct ChunkWindow {
  std::vector<TimelineRecord> records;
  std::vector<uint64_t> values;  // what the records' `values` point into
  std::shared_ptr<const ChunkNames> names;
  size_t next_event = 0;  // of the chunk, the first that is not in the window
};

}  // namespace neurontrace
