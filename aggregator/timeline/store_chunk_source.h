// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "aggregator/store/capture_reader.h"
#include "aggregator/timeline/chunk_source.h"
#include "lib/trace/capture_record.h"

namespace neurontrace {

// Reads a capture from this aggregator's own store, which must outlive it. A reader with a snapshot
// gives the same answers however the capture changes meanwhile; see CaptureReader. Used by one
// thread at a time.
class StoreChunkSource : public ChunkSource {
 public:
  StoreChunkSource(CaptureReader reader, CaptureRecord record)
      : reader_(reader), record_(std::move(record)) {}

  absl::StatusOr<CaptureDescription> Describe() override;
  absl::Status ReadIndex(uint32_t stream, IndexPosition from, size_t entries_max,
                         std::vector<ChunkEntry>& entries) override;
  absl::Status ReadColumns(uint32_t stream, uint64_t sequence, std::string& columns) override;
  void ReportUnreadable(uint32_t stream, uint64_t sequence, const absl::Status& why) override;

 private:
  CaptureReader reader_;
  CaptureRecord record_;
  StoredChunk chunk_;
  ForeignStops stops_;
  std::optional<ChunkIndexIterator> index_;  // used last; kept open if there is a snapshot
  // Chunks that were reported, each once however often a reading meets it.
  struct Unreadable {
    std::set<uint64_t> reported;
    // Reported chunks that the store noted because they are not counted as losses already.
    uint64_t noted = 0;
  };
  std::map<uint32_t, Unreadable> unreadable_;  // by stream
};

}  // namespace neurontrace
