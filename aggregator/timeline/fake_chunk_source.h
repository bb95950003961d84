// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "aggregator/timeline/chunk_source.h"
#include "lib/trace/event_chunk.h"

namespace neurontrace {

// A capture in memory, for tests and benchmarks of readers. Used by one thread at a time.
class FakeChunkSource : public ChunkSource {
 public:
  CaptureDescription& description() { return description_; }

  // Adds a stream and returns its number for the functions below.
  uint32_t AddStream(StreamIdentity identity, std::vector<RankEvidence> evidence = {});
  StreamDescription& stream(uint32_t number) { return description_.streams[number]; }
  // Adds the events of a builder as the stream's next chunk.
  void AddChunk(uint32_t stream, EventChunkBuilder& builder);
  // Adds columns that no builder made. Aborts if they cannot be decoded.
  void AddColumns(uint32_t stream, std::string_view columns);
  // Makes the index look like one of builds that did not record event types.
  void ForgetEventTypes();
  // Makes a chunk unreadable, like one that a store's disk has lost.
  void Lose(uint32_t stream, uint64_t sequence);
  // Returns the stored columns of a chunk, for tests that damage them.
  std::string& columns(uint32_t stream, uint64_t sequence);

  // Calls of ReadColumns.
  uint64_t chunks_read() const { return chunks_read_; }
  // Calls of ReadIndex, and the entries that they returned.
  uint64_t index_reads() const { return index_reads_; }
  uint64_t entries_read() const { return entries_read_; }

  absl::StatusOr<CaptureDescription> Describe() override { return description_; }
  absl::Status ReadIndex(uint32_t stream, IndexPosition from, size_t entries_max,
                         std::vector<ChunkEntry>& entries) override;
  absl::Status ReadColumns(uint32_t stream, uint64_t sequence, std::string& columns) override;

 private:
  // Compressed as a store has it, so that readers decompress.
  struct StoredChunk {
    std::string compressed;
    uint32_t columns_bytes = 0;
    bool is_lost = false;
  };
  struct StoredStream {
    std::vector<StoredChunk> chunks;
    std::map<std::pair<uint64_t, uint64_t>, ChunkEntry> index;  // by last timestamp, sequence
  };

  CaptureDescription description_;
  std::vector<StoredStream> streams_;
  uint64_t chunks_read_ = 0;
  uint64_t index_reads_ = 0;
  uint64_t entries_read_ = 0;
};

}  // namespace neurontrace
