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

// A capture's reader is here with what it hands out: they share a snapshot and their private parts.
namespace neurontrace {

class ChunkStore;
class Database;

// A moment of the store. Reads through it see nothing that is written or deleted later. Keeps the
// space of deleted data on the disk as long as it exists, so readers must not keep one for long.
// Must not outlive the store.
class StoreSnapshot;

// A chunk as it is stored, pinned in RocksDB's memory instead of copied. Its views are valid until
// the next ReadChunk into it or its end. Meant to be reused from chunk to chunk. One thread at a
// time; must not outlive the store.
class StoredChunk {
 public:
  StoredChunk();
  ~StoredChunk();
  StoredChunk(StoredChunk&&) noexcept;
  StoredChunk& operator=(StoredChunk&&) noexcept;

  uint32_t event_count() const { return event_count_; }
  uint64_t first_timestamp_ns() const { return first_timestamp_ns_; }  // raw; 0 without events
  uint64_t last_timestamp_ns() const { return last_timestamp_ns_; }
  uint32_t columns_bytes() const { return columns_bytes_; }  // before compression
  uint32_t crc32c() const { return crc32c_; }  // of header, then columns; not checked by ReadChunk
  std::string_view header_bytes() const { return header_bytes_; }  // as received
  std::string_view columns() const { return columns_; }            // compressed, as received

 private:
  friend class StreamReader;
  struct Pinned;
  absl::Status Parse();  // sets the views; DATA_LOSS if the frame is not valid

  std::unique_ptr<Pinned> pinned_;
  uint32_t event_count_ = 0;
  uint64_t first_timestamp_ns_ = 0;
  uint64_t last_timestamp_ns_ = 0;
  uint32_t columns_bytes_ = 0;
  uint32_t crc32c_ = 0;
  std::string_view header_bytes_;
  std::string_view columns_;
};

// Walks the index entries of one stream in the order of their last timestamp, then sequence:
//
//   ChunkIndexIterator it = stream.Index(from_ns);
//   for (; it.Valid(); it.Next()) use(it.entry());
//   RETURN_IF_ERROR(it.status());
//
// An error of reading or a damaged entry ends the walk: Valid becomes false and status says why.
// One thread at a time; must not outlive the store.
class ChunkIndexIterator {
 public:
  ~ChunkIndexIterator();
  ChunkIndexIterator(ChunkIndexIterator&&) noexcept;
  ChunkIndexIterator& operator=(ChunkIndexIterator&&) noexcept;

  bool Valid() const;
  // Requires Valid, as do entry and ReadForeignStops.
  void Next();
  const ChunkIndexEntry& entry() const { return entry_; }  // until Next
  // Decodes the chunk's stops whose start is in an earlier chunk into `out`, which keeps its
  // memory. Fails with DATA_LOSS if the entry is damaged.
  absl::Status ReadForeignStops(ForeignStops& out) const;
  absl::Status status() const { return status_; }  // OK at the regular end

 private:
  friend class StreamReader;
  struct Position;
  explicit ChunkIndexIterator(std::unique_ptr<Position> position);
  void Take();  // decodes the entry under the position

  std::unique_ptr<Position> position_;
  ChunkIndexEntry entry_;
  absl::Status status_;
};

// Reads the chunks of one stream of one capture. Any thread; must not outlive the store. Cheap to
// copy.
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

  // Iterates over the entries of all chunks whose last timestamp, raw, is at or after
  // `from_timestamp_ns`. Chunks without events have no entry.
  ChunkIndexIterator Index(uint64_t from_timestamp_ns = 0) const;
  // Makes `it`, which Index of any stream of this capture returned, what Index returns here.
  // Faster, as nothing is opened. Requires that both readers share a snapshot.
  void MoveIndex(ChunkIndexIterator& it, uint64_t from_timestamp_ns) const;
  bool has_snapshot() const { return snapshot_ != nullptr; }

  // Reads a chunk into `out`. Fails with NOT_FOUND if there is no such chunk. Fails with DATA_LOSS
  // if it is damaged; it is then removed and counted as a loss of its stream, so that the next
  // reading does not meet it again.
  absl::Status ReadChunk(uint64_t sequence, StoredChunk& out) const;
  // Remembers for the certificate that a reader could not use this chunk, for example because its
  // columns do not decode. `count` is the number of such chunks of the stream in this reading so
  // far. Returns false, and remembers nothing, if the chunk is gone and counts as a loss already.
  absl::StatusOr<bool> RecordUnreadable(uint64_t sequence, uint64_t count, std::string what) const;

 private:
  Database* database_;
  ChunkStore* chunks_;
  std::shared_ptr<const StoreSnapshot> snapshot_;  // null: reads the current state
  CaptureId capture_;
  uint32_t stream_;
};

// Reads what is stored of one capture, while it grows or after its end. Any thread; must not
// outlive the store. Cheap to copy.
class CaptureReader {
 public:
  CaptureReader(Database& database, ChunkStore& chunks, const CaptureId& capture)
      : database_(&database), chunks_(&chunks), capture_(capture) {}
  // Returns a reader of the same capture that sees the store as it is now.
  CaptureReader Snapshot() const;

  const CaptureId& capture() const { return capture_; }

  // Returns the records of all streams by number, each with its worker's job. Remarks that could
  // not be written to a record yet are included.
  //
  // A core's rank evidence is that of the newest resolution, which is the latest report of its
  // worker's agent. It applies even if it came after the capture or withdraws a claim, because the
  // rank of a process does not change. Evidence of the newest chunk is used in two cases. One is
  // that the inventory does not know the core. The other is that only the chunk has an observed
  // rank, from communicator calls or events, as a restarted agent may not remember that.
  absl::StatusOr<std::vector<StreamRecord>> Streams() const;

  // Sums over all streams. Numbers of events exclude host samples.
  struct Totals {
    uint64_t chunks = 0;
    uint64_t events = 0;
    uint64_t events_lost = 0;
    bool events_lost_unknown = false;  // further events, of unknown number, are lost
    uint64_t events_expired = 0;
    uint64_t bytes = 0;  // headers and compressed columns
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
