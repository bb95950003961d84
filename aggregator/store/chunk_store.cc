// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/chunk_store.h"

#include <cassert>
#include <tuple>

#include "aggregator/store/chunk_frame.h"
#include "aggregator/store/chunk_index_entry.h"
#include "aggregator/store/damaged_chunk.h"
#include "aggregator/store/database.h"
#include "aggregator/store/keys.h"
#include "aggregator/store/record_codec.h"
#include "aggregator/store/stream_check.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"
#include "lib/trace/store_limits.h"

namespace neurontrace {

// Everything known of the streams of one capture. A record is durable once its stream has a chunk:
// FindOrMake adds it before, and a failed write leaves it with nothing in it.
struct ChunkStore::CaptureStreams {
  absl::flat_hash_map<StreamIdentity, uint32_t> numbers;
  std::map<uint32_t, StreamRecord> records;
  absl::flat_hash_map<std::string, std::vector<uint32_t>> by_agent;

  void Insert(StreamRecord record) {
    numbers.emplace(record.identity, record.number);
    by_agent[record.identity.agent_id].push_back(record.number);
    records.emplace(record.number, std::move(record));
  }

  // Returns nullptr at limits::kStreamsPerCaptureMax.
  StreamRecord* FindOrMake(const StreamIdentity& identity) {
    if (const auto it = numbers.find(identity); it != numbers.end()) {
      return &records.at(it->second);
    }
    if (records.size() >= limits::kStreamsPerCaptureMax) return nullptr;
    StreamRecord record;
    // One above the highest, as numbers have holes where a deletion or repair removed streams.
    record.number = records.empty() ? 0 : records.rbegin()->first + 1;
    assert(!records.contains(record.number));
    record.identity = identity;
    const uint32_t number = record.number;
    Insert(std::move(record));
    return &records.at(number);
  }
};

// Kept from write to write, so that the batch's memory does not grow from nothing for each group.
struct ChunkStore::Scratch {
  rocksdb::WriteBatch batch;
};

// One write in preparation: the records as they will be, and the RocksDB batch. The live records
// change only in Commit after the write succeeded, so a failed one leaves memory as the disk is.
class ChunkStore::Batch {
 public:
  Batch(Database& database, rocksdb::WriteBatch& batch) : database_(database), batch_(batch) {
    batch_.Clear();
  }

  // Decides about one chunk and stages it. `live` is the record in memory, which stays unchanged.
  PutResult Add(const ReceivedChunk& chunk, StreamRecord& live) {
    StreamRecord& record = StagedCopy(live, chunk.header.capture_id);
    PutResult result{.next_sequence = record.next_sequence};
    // Duplicates are tested first: after a reconnection an agent repeats chunks of an ended stream,
    // too.
    if (chunk.header.sequence < record.next_sequence) {
      result.outcome = PutOutcome::kDuplicate;
      result.differs = Differs(chunk, record.number);
    } else if (record.ended) {
      result.outcome = PutOutcome::kStreamEnded;
    } else if (chunk.header.sequence > record.next_sequence && !chunk.gone_before) {
      result.outcome = PutOutcome::kGap;
    } else {
      assert(chunk.header.sequence == record.next_sequence || chunk.gone_before);
      PutChunk(chunk, record.number);
      if (chunk.header.is_canary() && record.canary_realtime_ns != 0) {
        // The newest canary is enough to show where the stream stands; older ones would only
        // accumulate.
        batch_.Delete(database_.family(Family::kChunks),
                      keys::Chunk(chunk.header.capture_id, record.number, record.canary_sequence));
      }
      record.Add(chunk.header, chunk.bytes(), chunk.gone_before);
      result.next_sequence = record.next_sequence;
      assert(result.next_sequence == chunk.header.sequence + 1);
    }
    return result;
  }

  // Writes everything. On success the live records become the staged ones, `sizes` has the new
  // sizes, and `lost` the losses that were added.
  absl::Status Commit(Durability durability, CaptureSizes& sizes, LossTable& lost) {
    // Records go into the same batch as their chunks, so both agree after any crash.
    for (const Staged& staged : staged_) {
      assert(staged.record.number == staged.live->number);
      assert(staged.record.next_sequence >= staged.live->next_sequence);
      // Only duplicates and refused chunks came for this stream.
      if (staged.record.next_sequence == staged.live->next_sequence) continue;
      const std::string key = keys::Stream(staged.capture, staged.record.number);
      batch_.Put(database_.family(Family::kStreams), key, EncodeStreamRecord(staged.record));
    }
    if (batch_.Count() > 0) {
      RETURN_IF_ERROR(database_.Write(batch_, durability == Durability::kSynced, "storing chunks"));
    }
    for (Staged& staged : staged_) {
      sizes.Move(staged.capture, staged.live->bytes, staged.record.bytes);
      lost.AddGrowth(staged.live->losses, staged.record.losses);
      *staged.live = std::move(staged.record);
    }
    return absl::OkStatus();
  }

 private:
  // A record as it will be, with the one that it replaces.
  struct Staged {
    StreamRecord* live;
    CaptureId capture;
    StreamRecord record;
  };

  // Several chunks of one stream in a group build on each other, so they share one copy.
  StreamRecord& StagedCopy(StreamRecord& live, const CaptureId& capture) {
    const auto [it, is_new] = staged_at_.try_emplace(&live, staged_.size());
    if (is_new) staged_.push_back({&live, capture, live});
    assert(staged_at_.size() == staged_.size());
    return staged_[it->second].record;
  }

  // Compares checksums with the stored chunk, which is read from the disk; retries are rare. A
  // chunk that replaces a lost one differs intentionally, and one that cannot be read counts as
  // equal.
  bool Differs(const ReceivedChunk& chunk, uint32_t stream) const {
    if (chunk.header.replaced) return false;
    rocksdb::PinnableSlice value;
    const std::string key = keys::Chunk(chunk.header.capture_id, stream, chunk.header.sequence);
    if (!database_.db().Get({}, database_.family(Family::kChunks), key, &value).ok()) return false;
    const auto stored = ChunkFrame::Decode(ToView(value));
    return stored && stored->crc32c != chunk.crc32c;
  }

  // Adds the chunk and its index entry to the batch.
  void PutChunk(const ReceivedChunk& chunk, uint32_t stream) {
    const ChunkHeader& header = chunk.header;
    const auto frame = ChunkFrame{.crc32c = chunk.crc32c,
                                  .event_count = header.event_count,
                                  .columns_bytes = header.columns_bytes,
                                  .header_bytes = static_cast<uint32_t>(chunk.header_bytes.size()),
                                  .first_timestamp_ns = header.first_timestamp_ns,
                                  .last_timestamp_ns = header.last_timestamp_ns,
                                  .gone_before = chunk.gone_before}
                           .Encode();
    const std::string key = keys::Chunk(header.capture_id, stream, header.sequence);
    const rocksdb::Slice key_part = ToSlice(key);
    // RocksDB concatenates the parts, so header and columns are copied once.
    const rocksdb::Slice value_parts[] = {rocksdb::Slice(frame.data(), frame.size()),
                                          ToSlice(chunk.header_bytes), ToSlice(chunk.columns)};
    batch_.Put(database_.family(Family::kChunks), rocksdb::SliceParts(&key_part, 1),
               rocksdb::SliceParts(value_parts, 3));
    // No reader of events looks for a chunk without any.
    if (header.event_count == 0) return;
    batch_.Put(
        database_.family(Family::kChunkIndex),
        keys::ChunkIndex(header.capture_id, stream, header.last_timestamp_ns, header.sequence),
        EncodeChunkIndexValue(header, chunk.bytes(), chunk.foreign_stops));
  }

  Database& database_;
  rocksdb::WriteBatch& batch_;
  std::vector<Staged> staged_;
  absl::flat_hash_map<const StreamRecord*, size_t> staged_at_;
};

ChunkStore::ChunkStore(Database& database, Durability durability)
    : database_(database), durability_(durability), scratch_(std::make_unique<Scratch>()) {}

ChunkStore::~ChunkStore() = default;

absl::StatusOr<bool> ChunkStore::HasCaptureEnded(const CaptureId& capture) const {
  const auto value = database_.Get(Family::kCaptures, keys::Capture(capture));
  if (absl::IsNotFound(value.status())) return true;
  RETURN_IF_ERROR(value.status());
  ASSIGN_OR_RETURN(const CaptureRecord record, DecodeCaptureRecord(capture, *value));
  return HasEnded(record.state);
}

// Streams are loaded as a whole, because the next chunk may belong to any of them.
absl::StatusOr<ChunkStore::CaptureStreams*> ChunkStore::Load(const CaptureId& capture) {
  if (const auto it = captures_.find(capture); it != captures_.end()) return it->second.get();
  const auto known = database_.Get(Family::kCaptures, keys::Capture(capture));
  if (absl::IsNotFound(known.status())) return nullptr;
  RETURN_IF_ERROR(known.status());
  auto streams = std::make_unique<CaptureStreams>();
  uint64_t bytes = 0;
  RETURN_IF_ERROR(database_.ForEach(
      Family::kStreams, capture.bytes(), [&](std::string_view key, std::string_view value) {
        const auto parsed = keys::ParseStream(key);
        if (!parsed) return DataLoss("malformed key of {} bytes in family streams", key.size());
        auto record = DecodeStreamRecord(parsed->stream, value);
        if (!record.ok()) return record.status();
        bytes += record->bytes;
        streams->Insert(*std::move(record));
        return absl::OkStatus();
      }));
  // From now on every change goes through sizes_.Move, so this sum is not computed again.
  sizes_.Set(capture, bytes);
  return captures_.emplace(capture, std::move(streams)).first->second.get();
}

// The lock is held during the sync: cursors may only move in the order of the writes.
absl::StatusOr<std::vector<PutResult>> ChunkStore::PutBatch(std::span<const ReceivedChunk> chunks) {
  const MutexLock lock(mutex_);
  std::vector<PutResult> results;
  results.reserve(chunks.size());
  Batch batch(database_, scratch_->batch);
  for (const ReceivedChunk& chunk : chunks) {
    ASSIGN_OR_RETURN(CaptureStreams* const streams, Load(chunk.header.capture_id));
    if (streams == nullptr) {
      results.push_back({.outcome = PutOutcome::kUnknownCapture});
      continue;
    }
    // A new stream gets its record in memory here. If the write fails, the record stays with
    // nothing in it, and the next attempt uses it.
    StreamRecord* const live = streams->FindOrMake(chunk.header.stream);
    results.push_back(live == nullptr ? PutResult{.outcome = PutOutcome::kTooManyStreams}
                                      : batch.Add(chunk, *live));
  }
  LossTable lost;
  const absl::Status status = batch.Commit(durability_, sizes_, lost);
  // One unusually large group is no reason to hold its memory for ever.
  if (scratch_->batch.GetDataSize() > limits::kStoreBatchBytesKept) {
    scratch_->batch = rocksdb::WriteBatch();
  }
  RETURN_IF_ERROR(status);
  assert(results.size() == chunks.size());
  const MutexLock losses_lock(losses_mutex_);
  losses_.Add(lost);
  return results;
}

LossTable ChunkStore::losses() const {
  const MutexLock lock(losses_mutex_);
  return losses_;
}

void ChunkStore::CountGrowth(const std::vector<Loss>& before, const std::vector<Loss>& after) {
  const MutexLock lock(losses_mutex_);
  losses_.AddGrowth(before, after);
}

absl::StatusOr<std::vector<StreamCursor>> ChunkStore::Cursors(const CaptureId& capture,
                                                              std::string_view agent_id) {
  const MutexLock lock(mutex_);
  std::vector<StreamCursor> cursors;
  ASSIGN_OR_RETURN(const CaptureStreams* const streams, Load(capture));
  if (streams == nullptr) return cursors;
  const auto numbers = streams->by_agent.find(std::string(agent_id));
  if (numbers == streams->by_agent.end()) return cursors;
  for (const uint32_t number : numbers->second) {
    const StreamRecord& record = streams->records.at(number);
    // Streams whose first write failed have no cursor.
    if (record.next_sequence > 0) cursors.push_back(record.Cursor());
  }
  return cursors;
}

// Asks the disk once more under the lock, because another reader may have removed the chunk, or the
// error may have passed.
absl::Status ChunkStore::RecordDamaged(const CaptureId& capture, uint32_t stream,
                                       uint64_t sequence) {
  const MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const bool is_damaged, IsDamaged(database_, capture, stream, sequence));
  if (!is_damaged) return absl::OkStatus();
  // Readers ask also about captures that have ended, which must not stay in memory for that.
  const bool was_loaded = captures_.contains(capture);
  ASSIGN_OR_RETURN(CaptureStreams* const streams, Load(capture));
  if (streams == nullptr) return absl::OkStatus();
  const auto record = streams->records.find(stream);
  if (record == streams->records.end()) return absl::OkStatus();
  const uint64_t bytes = record->second.bytes;
  const std::vector<Loss> losses = record->second.losses;
  // Failed removals change nothing: the next reader meets the chunk again.
  absl::Status status = CheckWritable();
  if (status.ok()) status = RemoveDamaged(database_, capture, sequence, record->second);
  sizes_.Move(capture, bytes, record->second.bytes);
  CountGrowth(losses, record->second.losses);
  if (!was_loaded) captures_.erase(capture);
  if (status.ok()) ++damaged_chunks_;
  return status;
}

// Writes only if the remark is news, as a reader meets the same damage in every pass.
absl::Status ChunkStore::RecordFound(const FoundDamage& found, uint64_t count) {
  const Remark remark{.kind = found.kind, .count = count, .details = {found.what}};
  absl::Status status;
  {
    const MutexLock lock(mutex_);
    const bool was_loaded = captures_.contains(found.capture);
    ASSIGN_OR_RETURN(CaptureStreams* const streams, Load(found.capture));
    if (streams == nullptr) return absl::OkStatus();
    const auto record = streams->records.find(found.stream);
    if (record == streams->records.end()) return absl::OkStatus();
    StreamRecord after = record->second;
    MergeFound(remark, after.remarks);
    if (after != record->second) {
      status = CheckWritable();
      if (status.ok()) {
        status = database_.Put(Family::kStreams, keys::Stream(found.capture, found.stream),
                               EncodeStreamRecord(after), /*sync=*/true);
      }
      if (status.ok()) record->second = std::move(after);
    }
    if (!was_loaded) captures_.erase(found.capture);
  }
  return status.ok() ? status : RecordFoundDamage(found, remark);
}

// A write would try to resume the database first, which takes long where it cannot succeed.
absl::Status ChunkStore::CheckWritable() const {
  if (!database_.must_reopen()) return absl::OkStatus();
  return Unavailable("the store accepts no writes until it is reopened");
}

absl::Status ChunkStore::RecordFoundDamage(const FoundDamage& found, const Remark& remark) {
  {
    const MutexLock lock(found_mutex_);
    const std::pair key(found.capture, found.stream);
    if (!found_.contains(key) && found_.size() >= limits::kFoundDamageStreamsMax) {
      return ResourceExhausted("damage of {} streams is waiting to be recorded, which is the limit",
                               found_.size());
    }
    // Finding the same again must not grow the file.
    std::vector<Remark>& remarks = found_[key];
    const std::vector<Remark> before = remarks;
    MergeFound(remark, remarks);
    if (remarks == before) return absl::OkStatus();
  }
  return AppendFoundDamage(database_.path(), database_.env(), {&found, 1});
}

std::vector<Remark> ChunkStore::FoundSince(const CaptureId& capture, uint32_t stream) const {
  const MutexLock lock(found_mutex_);
  const auto known = found_.find({capture, stream});
  return known == found_.end() ? std::vector<Remark>() : known->second;
}

// Reads the whole stream. Called only for streams in which a check has found something.
absl::StatusOr<std::set<std::optional<uint64_t>>> ChunkStore::FaultsNow(
    const CaptureId& capture, uint32_t stream, const ExamineChunk& examine) const {
  std::set<std::optional<uint64_t>> faults;
  const auto value = database_.Get(Family::kStreams, keys::Stream(capture, stream));
  if (absl::IsNotFound(value.status())) return faults;
  RETURN_IF_ERROR(value.status());
  ASSIGN_OR_RETURN(const StreamRecord record, DecodeStreamRecord(stream, *value));
  StreamCheck check(
      database_, capture, record, examine,
      [&faults](std::optional<uint64_t> sequence, const std::string&) { faults.insert(sequence); });
  check.Run([] {});
  return faults;
}

// Each place is handled on its own, so an error leaves the file as it is, and the next start begins
// with it again.
absl::StatusOr<size_t> ChunkStore::TakeFoundDamage(const ExamineChunk& examine) {
  ASSIGN_OR_RETURN(const std::vector<FoundDamage> all,
                   ReadFoundDamage(database_.path(), database_.env()));
  if (all.empty()) return size_t{0};
  // Damaged chunks first: as losses they need no remark. Counts per kind then only include the
  // rest.
  for (const FoundDamage& found : all) {
    if (!found.sequence) continue;
    RETURN_IF_ERROR(RecordDamaged(found.capture, found.stream, *found.sequence));
  }
  size_t moved = 0;
  std::map<std::pair<CaptureId, uint32_t>, std::set<std::optional<uint64_t>>> faults;
  std::map<std::tuple<CaptureId, uint32_t, RemarkKind>, uint64_t> counts;
  for (const FoundDamage& found : all) {
    if (found.kind == RemarkKind::kStoreFault && examine) {
      const auto [known, is_new] = faults.try_emplace({found.capture, found.stream});
      if (is_new) {
        ASSIGN_OR_RETURN(known->second, FaultsNow(found.capture, found.stream, examine));
      }
      if (!known->second.contains(found.sequence)) continue;
    } else if (found.sequence) {
      const auto chunk =
          database_.Get(Family::kChunks, keys::Chunk(found.capture, found.stream, *found.sequence));
      if (absl::IsNotFound(chunk.status())) continue;  // counts as a loss by now
    }
    ++moved;
    const uint64_t count = ++counts[{found.capture, found.stream, found.kind}];
    RETURN_IF_ERROR(RecordFound(found, count));
  }
  // Last, so that a crash before it repeats the whole without counting anything twice.
  RETURN_IF_ERROR(RemoveFoundDamage(database_.path(), database_.env()));
  return moved;
}

// The lock is held for the whole step, as chunks that arrive change the same record.
absl::StatusOr<Trimmed> ChunkStore::Trim(const CaptureId& capture, uint32_t stream,
                                         const TrimRequest& request) {
  const MutexLock lock(mutex_);
  // The caller has read the capture's record a moment ago. A capture that ended since stays as it
  // is; loading it here would keep it in memory.
  if (!captures_.contains(capture)) {
    ASSIGN_OR_RETURN(const bool has_ended, HasCaptureEnded(capture));
    if (has_ended) return Trimmed{};
  }
  ASSIGN_OR_RETURN(CaptureStreams* const streams, Load(capture));
  if (streams == nullptr) return Trimmed{};
  const auto record = streams->records.find(stream);
  if (record == streams->records.end()) return Trimmed{};
  const uint64_t bytes = record->second.bytes;
  const std::vector<Loss> losses = record->second.losses;
  // The record may have changed even if this failed, as damaged chunks are booked in a separate
  // write.
  const auto trimmed = TrimStream(database_, capture, request, record->second);
  sizes_.Move(capture, bytes, record->second.bytes);
  CountGrowth(losses, record->second.losses);
  if (trimmed.ok()) damaged_chunks_ += trimmed->damaged;
  return trimmed;
}

// Usually answered from memory. Only the first question about a capture takes the lock of writers.
absl::StatusOr<uint64_t> ChunkStore::BytesOf(const CaptureId& capture) {
  if (const auto known = sizes_.Find(capture)) return *known;
  const MutexLock lock(mutex_);
  const bool was_loaded = captures_.contains(capture);
  ASSIGN_OR_RETURN(const CaptureStreams* const streams, Load(capture));
  if (streams == nullptr) return uint64_t{0};
  // Asking for its size must not keep an ended capture in memory.
  if (!was_loaded) captures_.erase(capture);
  return sizes_.Find(capture).value_or(0);
}

void ChunkStore::Forget(const CaptureId& capture) {
  const MutexLock lock(mutex_);
  captures_.erase(capture);
}

absl::StatusOr<ChunkStore::Deleted> ChunkStore::DeleteCapture(const CaptureId& capture) {
  const std::string begin = keys::Capture(capture);
  const std::string end = keys::PrefixEnd(begin);
  Deleted deleted;
  {
    const MutexLock lock(mutex_);
    captures_.erase(capture);
    sizes_.Erase(capture);
    RETURN_IF_ERROR(database_.ForEach(
        Family::kStreams, begin, [&](std::string_view key, std::string_view value) {
          const auto parsed = keys::ParseStream(key);
          if (!parsed) return DataLoss("malformed key of {} bytes in family streams", key.size());
          const auto record = DecodeStreamRecord(parsed->stream, value);
          if (!record.ok()) return record.status();
          deleted.chunks += record->chunks;
          deleted.bytes += record->bytes;
          return absl::OkStatus();
        }));
  }
  // Not under the lock, as this takes seconds: no chunk can arrive for a capture without a record.
  // Streams go last, because FinishDeletions recognises an interrupted deletion by them.
  RETURN_IF_ERROR(database_.DeleteRange(Family::kChunks, begin, end));
  RETURN_IF_ERROR(database_.DeleteRange(Family::kChunkIndex, begin, end));
  RETURN_IF_ERROR(database_.DeleteRange(Family::kStreams, begin, end));
  RETURN_IF_ERROR(database_.ReclaimSpace());
  return deleted;
}

// Only streams are searched: they are deleted last, so an unfinished deletion has left some.
absl::Status ChunkStore::FinishDeletions() {
  std::vector<CaptureId> orphans;
  {
    std::unique_ptr<rocksdb::Iterator> it(
        database_.db().NewIterator({}, database_.family(Family::kStreams)));
    it->SeekToFirst();
    while (it->Valid()) {
      const auto key = keys::ParseStream(ToView(it->key()));
      if (!key) return DataLoss("malformed key of {} bytes in family streams", it->key().size());
      const std::string prefix = keys::Capture(key->capture);
      const auto record = database_.Get(Family::kCaptures, prefix);
      if (absl::IsNotFound(record.status())) {
        orphans.push_back(key->capture);
      } else {
        RETURN_IF_ERROR(record.status());
      }
      // One key of each capture is enough.
      SeekPastPrefix(*it, prefix);
    }
    RETURN_IF_ERROR(FromRocksDb(it->status(), "looking for unfinished deletions"));
  }
  for (const CaptureId& orphan : orphans) RETURN_IF_ERROR(DeleteCapture(orphan).status());
  return absl::OkStatus();
}

}  // namespace neurontrace
