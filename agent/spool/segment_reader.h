// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/status/statusor.h"
#include "agent/spool/spool_format.h"
#include "lib/base/file_system.h"

namespace neurontrace {

// What was found in a segment beside its records.
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

// A record whose head and chunk header are sound. Its columns are not looked at, and `chunk_header`
// lives until the visitor returns.
struct FoundRecord {
  uint64_t offset = 0;
  RecordHead head;
  std::string_view chunk_header;
};

// Walks a segment from record to record without reading columns. Where a record should begin and
// none does, it looks for the next one; so damage costs what it hit, and a torn tail ends the walk.
// DATA_LOSS and UNIMPLEMENTED are about the segment as a whole (see DecodeSegmentHeader), other
// errors are the file's.
absl::StatusOr<SegmentSummary> ReadSegment(FileSystem::File& file,
                                           const std::function<void(const FoundRecord&)>& visit);

// True if the bytes are the columns that the record's head speaks of.
bool ColumnsMatch(const RecordHead& head, std::string_view chunk_header, std::string_view columns);

}  // namespace neurontrace
