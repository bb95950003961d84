// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "aggregator/store/capture_reader.h"
#include "aggregator/timeline/chunk_source.h"
#include "lib/trace/capture_record.h"

namespace neurontrace {

// A capture in this aggregator's own store. Must not outlive the store.
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
  // Chunks reported, each once however many readings meet it.
  struct Unreadable {
    std::set<uint64_t> reported;
    uint64_t noted = 0;  // of these, those that do not count as losses
  };
  std::map<uint32_t, Unreadable> unreadable_;  // by stream
};

}  // namespace neurontrace
