// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/status/statusor.h"
#include "agent/spool/spool_format.h"
#include "lib/base/file_system.h"

namespace neurontrace {

// What was found in a segment besides its records. Recovery and --spool-check read these numbers;
// bytes are bytes of the file.
struct SegmentSummary {
  SegmentHeader header;
  uint64_t file_bytes = 0;
  uint64_t records = 0;
  uint64_t unknown_records = 0;  // of a kind that this version does not know: passed over
  uint64_t damaged_places = 0;   // runs of bytes between records that are none
  uint64_t damaged_bytes = 0;
  uint64_t torn_bytes = 0;  // behind the last record: what a crash leaves of a write
  // Everything before this place was synced when the last batch was written.
  uint64_t synced_bytes = 0;
};

// A record whose head and chunk header are sound. Its columns were not read. `chunk_header` is
// valid until the visitor returns.
struct FoundRecord {
  uint64_t offset = 0;
  RecordHead head;
  std::string_view chunk_header;
};

// Walks a segment from record to record without reading columns. If a record should begin and none
// does, it searches for the next one; so damage costs only what it hit, and a torn tail ends the
// walk. Fails with DATA_LOSS and UNIMPLEMENTED about the segment as a whole (see
// DecodeSegmentHeader), and otherwise with the file's own errors. Blocks for the disk. Called on
// the thread that recovers the spool, and by --spool-check. If the file becomes shorter meanwhile,
// its missing end counts as torn.
absl::StatusOr<SegmentSummary> ReadSegment(FileSystem::File& file,
                                           const std::function<void(const FoundRecord&)>& visit);

// Returns true if the bytes are the columns that the record's head describes. Pure. The checksum is
// the source's own (ChunkEnvelope.crc32c), over header and columns.
bool ColumnsMatch(const RecordHead& head, std::string_view chunk_header, std::string_view columns);

}  // namespace neurontrace
