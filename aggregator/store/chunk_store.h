// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cassert>
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

// How many bytes are stored of each capture that was asked for or written to. Any thread, and none
// waits for the disk.
class CaptureSizes {
 public:
  std::optional<uint64_t> Find(const CaptureId& capture) const {
    const MutexLock lock(mutex_);
    const auto it = bytes_.find(capture);
    return it == bytes_.end() ? std::nullopt : std::optional(it->second);
  }
  void Set(const CaptureId& capture, uint64_t bytes) {
    const MutexLock lock(mutex_);
    bytes_[capture] = bytes;
  }
  // From one size of a part of it to another.
  void Move(const CaptureId& capture, uint64_t from, uint64_t to) {
    const MutexLock lock(mutex_);
    uint64_t& bytes = bytes_[capture];
    assert(bytes >= from);
    bytes += to - from;
  }
  void Erase(const CaptureId& capture) {
    const MutexLock lock(mutex_);
    bytes_.erase(capture);
  }

 private:
  mutable Mutex mutex_;
  absl::flat_hash_map<CaptureId, uint64_t> bytes_ NT_GUARDED_BY(mutex_);
};

class Database;

// A chunk that was validated, as it came.
struct ReceivedChunk {
  ChunkHeader header;
  std::string header_bytes;  // the header as it stood in the envelope
  std::string columns;       // compressed; empty without events
  uint32_t crc32c = 0;       // of both
  ForeignStops foreign_stops;
  std::optional<PrecedingGap> gone_before;  // the chunks between cursor and this one will not come

  size_t bytes() const { return header_bytes.size() + columns.size(); }
};

// Takes a stored chunk apart as the door does when it comes: checksum, header, every column,
// foreign stops. An error says what is wrong with it. One thread at a time.
using ExamineChunk = std::function<absl::StatusOr<ReceivedChunk>(
    std::string_view header, std::string_view columns, uint32_t crc32c)>;

enum class PutOutcome : uint8_t {
  kStored,
  kDuplicate,       // below the stream's cursor: stored before
  kGap,             // above it, and not said to be gone: continue from next_sequence
  kUnknownCapture,  // never known, or deleted
  kStreamEnded,     // the stream's last chunk is stored already
  kTooManyStreams,  // limits::kStreamsPerCaptureMax
};

struct PutResult {
  PutOutcome outcome = PutOutcome::kStored;
  uint64_t next_sequence = 0;  // of the stream, after this chunk
  bool differs = false;        // a duplicate with other contents than what is stored
};

// Where chunks become durable, and what knows how far every stream is. Streams get a number when
// their first chunk comes. Any thread; writes of several threads go one after the other.
class ChunkStore {
 public:
  ChunkStore(Database& database, Durability durability);
  ~ChunkStore();
  ChunkStore(const ChunkStore&) = delete;
  ChunkStore& operator=(const ChunkStore&) = delete;

  // Stores every chunk that continues its stream, each with its index entry and the stream's
  // record, in one write that is durable on return, as `durability` has it. One result a chunk, in
  // order. On an error
  // nothing is stored and no cursor has moved: the same chunks may be put again.
  absl::StatusOr<std::vector<PutResult>> PutBatch(std::span<const ReceivedChunk> chunks);

  // What is stored of the streams of one agent.
  absl::StatusOr<std::vector<StreamCursor>> Cursors(const CaptureId& capture,
                                                    std::string_view agent_id);

  // A chunk that a reader could not read: reads it once more, and if it is damaged, or missing
  // though the index names it, removes it and counts it as a loss of its stream (place store,
  // reason malformed).
  absl::Status BookDamaged(const CaptureId& capture, uint32_t stream, uint64_t sequence);
  // How many that were, since the start.
  uint64_t damaged_chunks() const { return damaged_chunks_; }
  // Remembers what a reader or a check found, in the stream's record and so in the certificate.
  // `count`: how many of its kind this reading or check has found in the stream so far; the
  // greatest one is kept, so that finding the same again changes nothing. Nothing for an unknown
  // stream. Where the database takes no writes, keeps it in memory and in a file beside the
  // database, for the next start; an error says that this failed, too.
  absl::Status NoteFound(const FoundDamage& found, uint64_t count);
  // What was found and is not in the stream's record yet.
  std::vector<Remark> FoundSince(const CaptureId& capture, uint32_t stream) const;
  // At start: moves what an earlier process or a check found from the file into the records;
  // damaged chunks become losses. What a check found is looked for again, as the repair of the
  // store may have undone it, and dropped where it is not found. Returns how much was moved.
  absl::StatusOr<size_t> TakeFoundDamage(const ExamineChunk& examine);
  // What all streams were found to have lost since the start: by their producers, on the way, here.
  LossTable losses() const;

  // One step of TrimStream on a stream of a capture that continues; nothing where there is none, or
  // where it has ended meanwhile.
  // Writers wait as long as that takes.
  absl::StatusOr<Trimmed> Trim(const CaptureId& capture, uint32_t stream,
                               const TrimRequest& request);

  // Headers and columns of a capture as they are stored now; reads its streams the first time, and
  // else waits for nobody.
  absl::StatusOr<uint64_t> BytesOf(const CaptureId& capture);

  // Frees what is remembered of a capture that has ended; it is read again when it is needed.
  void Forget(const CaptureId& capture);

  // Removes all chunks, index entries and stream records of a capture and gives their space back.
  // The capture's own record goes first, so that nothing is stored for it any more.
  struct Deleted {
    uint64_t chunks = 0;
    uint64_t bytes = 0;
  };
  absl::StatusOr<Deleted> DeleteCapture(const CaptureId& capture);
  // Removes what a deletion that was interrupted has left. At start, before anything else.
  absl::Status FinishDeletions();

 private:
  struct CaptureStreams;
  struct Scratch;
  class Batch;

  // What is stored of the capture's own record says so.
  absl::StatusOr<bool> HasCaptureEnded(const CaptureId& capture) const;
  void CountGrowth(const std::vector<Loss>& before, const std::vector<Loss>& after);
  absl::Status CheckWritable() const;
  absl::Status KeepFound(const FoundDamage& found, const Remark& remark);
  // The chunks of a stream, or nullopt for the stream itself, that a check finds faults in.
  absl::StatusOr<std::set<std::optional<uint64_t>>> FaultsNow(const CaptureId& capture,
                                                              uint32_t stream,
                                                              const ExamineChunk& examine) const;
  // nullptr for an unknown capture.
  absl::StatusOr<CaptureStreams*> Load(const CaptureId& capture) NT_REQUIRES(mutex_);

  Database& database_;
  const Durability durability_;
  Mutex mutex_;
  std::unique_ptr<Scratch> scratch_ NT_GUARDED_BY(mutex_);
  absl::flat_hash_map<CaptureId, std::unique_ptr<CaptureStreams>> captures_ NT_GUARDED_BY(mutex_);
  mutable Mutex found_mutex_;
  // Found while the database took no writes.
  std::map<std::pair<CaptureId, uint32_t>, std::vector<Remark>> found_ NT_GUARDED_BY(found_mutex_);
  CaptureSizes sizes_;
  std::atomic<uint64_t> damaged_chunks_ = 0;
  mutable Mutex losses_mutex_;  // never held while the disk is waited for
  LossTable losses_ NT_GUARDED_BY(losses_mutex_);
};

}  // namespace neurontrace
