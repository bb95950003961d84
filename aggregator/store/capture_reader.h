// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/store/chunk_index_entry.h"
#include "aggregator/store/foreign_stops.h"
#include "aggregator/store/stream_record.h"
#include "lib/trace/ids.h"

namespace neurontrace {

class ChunkStore;
class Database;

// A moment of the store: who reads through it meets nothing that came or went later. What was
// deleted keeps its place on the disk as long as one lives. Must not outlive the store.
class StoreSnapshot;

// A chunk where it lies in the store, pinned: what the views show lives until the next ReadChunk
// into it or its end. Reused from chunk to chunk. One thread at a time.
class StoredChunk {
 public:
  StoredChunk();
  ~StoredChunk();
  StoredChunk(StoredChunk&&) noexcept;
  StoredChunk& operator=(StoredChunk&&) noexcept;

  uint32_t event_count() const { return event_count_; }
  uint64_t first_timestamp_ns() const { return first_timestamp_ns_; }  // raw; 0 without events
  uint64_t last_timestamp_ns() const { return last_timestamp_ns_; }
  uint32_t columns_bytes() const { return columns_bytes_; }        // before compression
  uint32_t crc32c() const { return crc32c_; }                      // of header, then columns
  std::string_view header_bytes() const { return header_bytes_; }  // as received
  std::string_view columns() const { return columns_; }            // compressed, as received

 private:
  friend class StreamReader;
  struct Pinned;
  absl::Status Parse();  // what `pinned_` holds

  std::unique_ptr<Pinned> pinned_;
  uint32_t event_count_ = 0;
  uint64_t first_timestamp_ns_ = 0;
  uint64_t last_timestamp_ns_ = 0;
  uint32_t columns_bytes_ = 0;
  uint32_t crc32c_ = 0;
  std::string_view header_bytes_;
  std::string_view columns_;
};

// Walks the index entries of one stream in the order of their last timestamp:
//
//   ChunkIndexIterator it = stream.Index(from_ns);
//   for (; it.Valid(); it.Next()) use(it.entry());
//   RETURN_IF_ERROR(it.status());
//
// One thread at a time; must not outlive the store.
class ChunkIndexIterator {
 public:
  ~ChunkIndexIterator();
  ChunkIndexIterator(ChunkIndexIterator&&) noexcept;
  ChunkIndexIterator& operator=(ChunkIndexIterator&&) noexcept;

  bool Valid() const;
  void Next();
  const ChunkIndexEntry& entry() const { return entry_; }  // when Valid
  // The stops of this chunk whose start is in an earlier one. `out` is reused.
  absl::Status ReadForeignStops(ForeignStops& out) const;
  absl::Status status() const { return status_; }

 private:
  friend class StreamReader;
  struct Position;
  explicit ChunkIndexIterator(std::unique_ptr<Position> position);
  void Take();  // the entry under the position

  std::unique_ptr<Position> position_;
  ChunkIndexEntry entry_;
  absl::Status status_;
};

// The chunks of one stream of one capture. Any thread; must not outlive the store.
class StreamReader {
 public:
  StreamReader(Database& database, ChunkStore& chunks,
               std::shared_ptr<const StoreSnapshot> snapshot, const CaptureId& capture,
               uint32_t stream)
      : database_(&database),
        chunks_(&chunks),
        snapshot_(std::move(snapshot)),
        capture_(capture),
        stream_(stream) {}

  uint32_t number() const { return stream_; }

  // Entries of all chunks whose last timestamp is at or after `from_timestamp_ns` (raw).
  ChunkIndexIterator Index(uint64_t from_timestamp_ns = 0) const;

  // NOT_FOUND where there is no such chunk, DATA_LOSS where it is damaged: it is then gone, and a
  // loss of its stream.
  absl::Status ReadChunk(uint64_t sequence, StoredChunk& out) const;
  // A reader could not use this chunk, the `count`th of the stream in its reading. Remembers that
  // for the certificate; false: there is no need, as the chunk is gone and counts as a loss.
  absl::StatusOr<bool> NoteUnreadable(uint64_t sequence, uint64_t count, std::string what) const;

 private:
  Database* database_;
  ChunkStore* chunks_;
  std::shared_ptr<const StoreSnapshot> snapshot_;  // null: as the store is when it is read
  CaptureId capture_;
  uint32_t stream_;
};

// What is stored of one capture, while it grows or after. Any thread; must not outlive the store.
class CaptureReader {
 public:
  CaptureReader(Database& database, ChunkStore& chunks, const CaptureId& capture)
      : database_(&database), chunks_(&chunks), capture_(capture) {}
  // The same of this moment.
  CaptureReader Snapshot() const;

  const CaptureId& capture() const { return capture_; }

  // Returns all streams by number, each with its job. A core's rank evidence is that of the newest
  // resolution: what the agent of its worker said last, also after the capture and also where that
  // withdraws a claim, as the rank of a process does not change in its life. The newest chunk
  // counts where the inventory does not know the core, and where only the chunk has a rank that was
  // observed (communicator calls and events), as a restarted agent may not remember those.
  absl::StatusOr<std::vector<StreamRecord>> Streams() const;

  // Sums over all streams; the numbers of events are without the samples of hosts.
  struct Totals {
    uint64_t chunks = 0;
    uint64_t events = 0;
    uint64_t events_lost = 0;
    bool events_lost_unknown = false;  // and events of an unknown number
    uint64_t events_expired = 0;
    uint64_t bytes = 0;
  };
  absl::StatusOr<Totals> Sum() const;

  StreamReader Stream(uint32_t number) const {
    return {*database_, *chunks_, snapshot_, capture_, number};
  }

 private:
  absl::StatusOr<std::vector<StreamRecord>> StoredRecords() const;

  Database* database_;
  ChunkStore* chunks_;
  std::shared_ptr<const StoreSnapshot> snapshot_;
  CaptureId capture_;
};

}  // namespace neurontrace
