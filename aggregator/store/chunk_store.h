// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/store/capture_sizes.h"
#include "aggregator/store/chunk_trim.h"
#include "aggregator/store/durability.h"
#include "aggregator/store/foreign_stops.h"
#include "aggregator/store/found_damage.h"
#include "aggregator/store/stream_record.h"
#include "lib/base/mutex.h"
#include "lib/trace/chunk_header.h"
#include "lib/trace/ids.h"
#include "lib/trace/loss_table.h"
#include "lib/trace/remark.h"
#include "lib/trace/stream_cursor.h"

namespace neurontrace {

class Database;

// A validated chunk as it was received. A plain value.
struct ReceivedChunk {
  ChunkHeader header;
  std::string header_bytes;  // the serialized header, exactly as in the envelope
  std::string columns;       // compressed; empty without events
  uint32_t crc32c = 0;       // of both
  ForeignStops foreign_stops;
  // Why the chunks between the stream's cursor and this one will never come; nullopt: none are
  // missing.
  std::optional<PrecedingGap> gone_before;

  size_t bytes() const { return header_bytes.size() + columns.size(); }
};

// Validates a stored chunk as ingest does on arrival: checksum, header, every column, foreign
// stops. Fails with a description of what is wrong. The store gets it from its owner because the
// validation is in aggregator/ingest, which depends on the store. One thread at a time.
using ExamineChunk = std::function<absl::StatusOr<ReceivedChunk>(
    std::string_view header, std::string_view columns, uint32_t crc32c)>;

// What PutBatch did with one chunk. Only kStored changes the store.
enum class PutOutcome : uint8_t {
  kStored,
  kDuplicate,       // below the stream's cursor: stored before
  kGap,             // above it without an explanation: send from next_sequence on
  kUnknownCapture,  // never known, or deleted
  kStreamEnded,     // the stream's last chunk is stored already
  kTooManyStreams,  // limits::kStreamsPerCaptureMax
};

struct PutResult {
  PutOutcome outcome = PutOutcome::kStored;
  uint64_t next_sequence = 0;  // of the stream, after this chunk; 0 if the stream is unknown
  bool differs = false;        // a duplicate whose checksum is not that of the stored one
};

// Makes chunks durable and knows the cursor of every stream. A stream gets a number when its first
// chunk is stored.
//
// Any thread may call. Writers wait for each other, for the disk included; BytesOf, FoundSince and
// losses do not wait for them once a capture is known. The database must outlive it.
class ChunkStore {
 public:
  ChunkStore(Database& database, Durability durability);
  ~ChunkStore();
  ChunkStore(const ChunkStore&) = delete;
  ChunkStore& operator=(const ChunkStore&) = delete;

  // Stores every chunk that continues its stream, each with its index entry and the stream's
  // record, in one write. The write is as durable on return as `durability` requires. Returns one
  // result per chunk, in order. On an error nothing is stored and no cursor has moved, so the same
  // chunks may be put again.
  absl::StatusOr<std::vector<PutResult>> PutBatch(std::span<const ReceivedChunk> chunks);

  // Returns where one agent's streams of a capture continue; empty for an unknown capture.
  absl::StatusOr<std::vector<StreamCursor>> Cursors(const CaptureId& capture,
                                                    std::string_view agent_id);

  // Handles a chunk that a reader could not read. Reads it once more and, if it is damaged, or
  // missing although the index names it, removes it and counts it as a loss of its stream with
  // place store and reason malformed. Fails with UNAVAILABLE if the database takes no writes.
  absl::Status RecordDamaged(const CaptureId& capture, uint32_t stream, uint64_t sequence);
  // Chunks removed as damaged since the start.
  uint64_t damaged_chunks() const { return damaged_chunks_; }
  // Remembers what a reader or a check found, in the stream's record and thereby in the
  // certificate. `count` is how many of its kind this reading or check has found in the stream so
  // far. The greatest one is kept, so finding the same damage again changes nothing. Does nothing
  // for an unknown stream.
  //
  // If the database takes no writes, keeps it in memory and, for the next start, in a file beside
  // the database; fails if that is impossible, too.
  absl::Status RecordFound(const FoundDamage& found, uint64_t count);
  // Returns what was found and is not in the stream's record yet.
  std::vector<Remark> FoundSince(const CaptureId& capture, uint32_t stream) const;
  // Called at start. Moves what an earlier process or a check found from that file into the
  // records; damaged chunks become losses. Faults of a check are looked for again with `examine`
  // and dropped if they are gone, as a repair may have fixed them. Returns how many were moved.
  absl::StatusOr<size_t> TakeFoundDamage(const ExamineChunk& examine);
  // Losses that have been added to streams since the start: by producers, on the way, and in the
  // store.
  LossTable losses() const;

  // Runs one step of TrimStream on a stream of a capture that continues. Does nothing if the stream
  // is unknown or its capture has ended. Writers wait meanwhile, which is why the step is bounded.
  absl::StatusOr<Trimmed> Trim(const CaptureId& capture, uint32_t stream,
                               const TrimRequest& request);

  // Returns the stored bytes, headers and compressed columns, of a capture; 0 if it is unknown.
  // Reads its stream records the first time and never waits for the disk after that.
  absl::StatusOr<uint64_t> BytesOf(const CaptureId& capture);

  // Frees the memory of an ended capture's streams; they are read again when needed.
  void Forget(const CaptureId& capture);

  // What DeleteCapture removed.
  struct Deleted {
    uint64_t chunks = 0;
    uint64_t bytes = 0;
  };
  // Removes all chunks, index entries and stream records of a capture and returns their space to
  // the disk, which can take seconds. The caller deletes the capture's own record first, so that no
  // chunk is stored for it any more.
  absl::StatusOr<Deleted> DeleteCapture(const CaptureId& capture);
  // Called at start, before any other method. Completes deletions that were interrupted.
  absl::Status FinishDeletions();

 private:
  struct CaptureStreams;
  struct Scratch;
  class Batch;

  // Returns whether the capture has ended by its stored record; true also if it is gone.
  absl::StatusOr<bool> HasCaptureEnded(const CaptureId& capture) const;
  // Adds what a stream has lost more than before to losses().
  void CountGrowth(const std::vector<Loss>& before, const std::vector<Loss>& after);
  // Fails with UNAVAILABLE if no write can succeed before the database is opened again.
  absl::Status CheckWritable() const;
  // Remembers damage in memory and in the file, at most limits::kFoundDamageStreamsMax streams of
  // it.
  absl::Status RecordFoundDamage(const FoundDamage& found, const Remark& remark);
  // Checks one stream. Returns the sequences with faults, and nullopt for one of the stream itself.
  absl::StatusOr<std::set<std::optional<uint64_t>>> FaultsNow(const CaptureId& capture,
                                                              uint32_t stream,
                                                              const ExamineChunk& examine) const;
  // Returns the capture's streams, read from the database if necessary; nullptr if it is unknown.
  absl::StatusOr<CaptureStreams*> Load(const CaptureId& capture) NT_REQUIRES(mutex_);

  Database& database_;
  const Durability durability_;
  // Serializes writes. Locked before found_mutex_, losses_mutex_ and the mutex of sizes_.
  Mutex mutex_;
  std::unique_ptr<Scratch> scratch_ NT_GUARDED_BY(mutex_);  // reused by each PutBatch
  absl::flat_hash_map<CaptureId, std::unique_ptr<CaptureStreams>> captures_ NT_GUARDED_BY(mutex_);
  mutable Mutex found_mutex_;
  // By capture and stream; found while the database took no writes.
  std::map<std::pair<CaptureId, uint32_t>, std::vector<Remark>> found_ NT_GUARDED_BY(found_mutex_);
  CaptureSizes sizes_;
  std::atomic<uint64_t> damaged_chunks_ = 0;
  mutable Mutex losses_mutex_;  // never held while waiting for the disk
  LossTable losses_ NT_GUARDED_BY(losses_mutex_);
};

}  // namespace neurontrace
