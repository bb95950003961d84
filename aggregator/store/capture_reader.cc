// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/capture_reader.h"

#include <spdlog/spdlog.h>

#include <cassert>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "aggregator/store/chunk_frame.h"
#include "aggregator/store/chunk_store.h"
#include "aggregator/store/damaged_chunk.h"
#include "aggregator/store/database.h"
#include "aggregator/store/inventory_store.h"
#include "aggregator/store/keys.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"

namespace neurontrace {

// Releases the snapshot of RocksDB at its end.
class StoreSnapshot {
 public:
  explicit StoreSnapshot(rocksdb::DB& db) : db_(db), snapshot_(db.GetSnapshot()) {}
  ~StoreSnapshot() { db_.ReleaseSnapshot(snapshot_); }
  StoreSnapshot(const StoreSnapshot&) = delete;
  StoreSnapshot& operator=(const StoreSnapshot&) = delete;
  const rocksdb::Snapshot* get() const { return snapshot_; }

 private:
  rocksdb::DB& db_;
  const rocksdb::Snapshot* const snapshot_;
};

namespace {

// Without a snapshot each read sees the state at its own time.
rocksdb::ReadOptions OptionsFor(const std::shared_ptr<const StoreSnapshot>& snapshot) {
  rocksdb::ReadOptions options;
  if (snapshot != nullptr) options.snapshot = snapshot->get();
  return options;
}

// Returns whether the best claim was read by an agent in the worker's own calls or events, which no
// other evidence can refute.
bool IsObserved(const std::vector<RankEvidence>& evidence) {
  const RankEvidence* const best = BestEvidence(evidence);
  return best != nullptr &&
         (best->source == RankSource::kCommunicator || best->source == RankSource::kEvent);
}

// The agent's latest report replaces the newest chunk's claims, even where it withdraws one. A
// restarted agent may have forgotten an observation, which remains true.
std::vector<RankEvidence> NewestResolution(const std::vector<RankEvidence>& inventory,
                                           std::vector<RankEvidence> newest_chunk) {
  if (IsObserved(newest_chunk) && !IsObserved(inventory)) return newest_chunk;
  return inventory;
}

}  // namespace

// Keeps the memory of RocksDB that the views point into.
struct StoredChunk::Pinned {
  rocksdb::PinnableSlice value;
};

StoredChunk::StoredChunk() : pinned_(std::make_unique<Pinned>()) {}
StoredChunk::~StoredChunk() = default;
StoredChunk::StoredChunk(StoredChunk&&) noexcept = default;
StoredChunk& StoredChunk::operator=(StoredChunk&&) noexcept = default;

absl::Status StoredChunk::Parse() {
  const std::string_view value = ToView(pinned_->value);
  const auto frame = ChunkFrame::Decode(value);
  if (!frame)
    return DataLoss("its value of {} bytes does not have format {}", value.size(),
                    ChunkFrame::kVersion);
  event_count_ = frame->event_count;
  first_timestamp_ns_ = frame->first_timestamp_ns;
  last_timestamp_ns_ = frame->last_timestamp_ns;
  columns_bytes_ = frame->columns_bytes;
  crc32c_ = frame->crc32c;
  header_bytes_ = value.substr(ChunkFrame::kBytes, frame->header_bytes);
  columns_ = value.substr(ChunkFrame::kBytes + frame->header_bytes);
  return absl::OkStatus();
}

// Members are destroyed in reverse order, so the RocksDB iterator ends before its snapshot.
struct ChunkIndexIterator::Position {
  std::string prefix;
  std::shared_ptr<const StoreSnapshot> snapshot;  // outlives `it`
  std::unique_ptr<rocksdb::Iterator> it;
};

ChunkIndexIterator::ChunkIndexIterator(std::unique_ptr<Position> position)
    : position_(std::move(position)) {
  Take();
}
ChunkIndexIterator::~ChunkIndexIterator() = default;
ChunkIndexIterator::ChunkIndexIterator(ChunkIndexIterator&&) noexcept = default;
ChunkIndexIterator& ChunkIndexIterator::operator=(ChunkIndexIterator&&) noexcept = default;

// The prefix is compared by hand: the families have no prefix extractor.
bool ChunkIndexIterator::Valid() const {
  return status_.ok() && position_->it->Valid() &&
         position_->it->key().starts_with(ToSlice(position_->prefix));
}

void ChunkIndexIterator::Next() {
  position_->it->Next();
  Take();
}

// Leaves `entry_` unchanged at the end and after an error.
void ChunkIndexIterator::Take() {
  if (!position_->it->status().ok()) {
    status_ = FromRocksDb(position_->it->status(), "reading the chunk index");
  }
  if (!Valid()) return;
  const auto key = keys::ParseChunkIndex(ToView(position_->it->key()));
  if (!key) {
    status_ =
        DataLoss("malformed key of {} bytes in family chunk_index", position_->it->key().size());
    return;
  }
  entry_.sequence = key->sequence;
  entry_.last_timestamp_ns = key->last_timestamp_ns;
  status_ = DecodeChunkIndexValue(ToView(position_->it->value()), entry_, nullptr);
}

// Stops are decoded on demand, as most readers of the index need only times and sequences.
absl::Status ChunkIndexIterator::ReadForeignStops(ForeignStops& out) const {
  ChunkIndexEntry entry;
  return DecodeChunkIndexValue(ToView(position_->it->value()), entry, &out);
}

ChunkIndexIterator StreamReader::Index(uint64_t from_timestamp_ns) const {
  auto position = std::make_unique<ChunkIndexIterator::Position>();
  position->prefix = keys::Stream(capture_, stream_);
  position->snapshot = snapshot_;
  position->it.reset(
      database_->db().NewIterator(OptionsFor(snapshot_), database_->family(Family::kChunkIndex)));
  // Keys are ordered by last timestamp, so the first entry that matters is found without a scan.
  position->it->Seek(keys::ChunkIndex(capture_, stream_, from_timestamp_ns, 0));
  return ChunkIndexIterator(std::move(position));
}

void StreamReader::MoveIndex(ChunkIndexIterator& it, uint64_t from_timestamp_ns) const {
  ChunkIndexIterator::Position& position = *it.position_;
  assert(has_snapshot() && position.snapshot == snapshot_);
  position.prefix = keys::Stream(capture_, stream_);
  position.it->Seek(keys::ChunkIndex(capture_, stream_, from_timestamp_ns, 0));
  it.status_ = absl::OkStatus();
  it.Take();
}

absl::Status StreamReader::ReadChunk(uint64_t sequence, StoredChunk& out) const {
  // RocksDB requires an unpinned slice.
  out.pinned_->value.Reset();
  const rocksdb::Status status =
      database_->db().Get(OptionsFor(snapshot_), database_->family(Family::kChunks),
                          keys::Chunk(capture_, stream_, sequence), &out.pinned_->value);
  absl::Status result = FromRocksDb(status, "reading a chunk");
  if (result.ok()) result = out.Parse();
  if (result.ok()) return result;
  // A chunk that a snapshot's index names and that is missing is damage, too. Without a snapshot it
  // may just have been deleted.
  if (absl::IsDataLoss(result) || (absl::IsNotFound(result) && snapshot_ != nullptr)) {
    out.pinned_->value.Reset();
    // If it cannot be removed now, the caller remembers it with RecordUnreadable.
    if (const absl::Status booked = chunks_->RecordDamaged(capture_, stream_, sequence);
        !booked.ok()) {
      SPDLOG_WARN("capture {}, stream {}, chunk {} is damaged and cannot be removed: {}",
                  capture_.ToString(), stream_, sequence, std::string(booked.message()));
    }
  }
  return MakeStatus(result.code(), "capture {}, stream {}, chunk {}: {}", capture_.ToString(),
                    stream_, sequence, std::string(result.message()));
}

// A chunk that another reader has removed meanwhile is in the losses already, and a remark would
// count it twice.
absl::StatusOr<bool> StreamReader::RecordUnreadable(uint64_t sequence, uint64_t count,
                                                    std::string what) const {
  const auto chunk = database_->Get(Family::kChunks, keys::Chunk(capture_, stream_, sequence));
  if (absl::IsNotFound(chunk.status())) {
    ASSIGN_OR_RETURN(const bool is_damaged, IsDamaged(*database_, capture_, stream_, sequence));
    if (!is_damaged) return false;
  }
  RETURN_IF_ERROR(chunks_->RecordFound({.capture = capture_,
                                        .stream = stream_,
                                        .sequence = sequence,
                                        .kind = RemarkKind::kChunkUnreadable,
                                        .what = std::move(what)},
                                       count));
  return true;
}

// The snapshot is shared by all copies and readers made from it, and released with the last.
CaptureReader CaptureReader::Snapshot() const {
  CaptureReader of_now = *this;
  of_now.snapshot_ = std::make_shared<const StoreSnapshot>(database_->db());
  return of_now;
}

// Fails with DATA_LOSS if a record cannot be decoded, since sums without it would be wrong.
absl::StatusOr<std::vector<StreamRecord>> CaptureReader::StoredRecords() const {
  std::vector<StreamRecord> records;
  RETURN_IF_ERROR(database_->ForEach(
      OptionsFor(snapshot_), Family::kStreams, capture_.bytes(),
      [&](std::string_view key, std::string_view value) {
        const auto parsed = keys::ParseStream(key);
        if (!parsed) return DataLoss("malformed key of {} bytes in family streams", key.size());
        auto record = DecodeStreamRecord(parsed->stream, value);
        if (!record.ok()) return record.status();
        // Damage that was found while the database took no writes is not in the stored record yet.
        for (const Remark& found : chunks_->FoundSince(capture_, parsed->stream)) {
          MergeFound(found, record->remarks);
        }
        records.push_back(*std::move(record));
        return absl::OkStatus();
      }));
  return records;
}

absl::StatusOr<CaptureReader::Totals> CaptureReader::Sum() const {
  ASSIGN_OR_RETURN(const std::vector<StreamRecord> records, StoredRecords());
  Totals totals;
  for (const StreamRecord& record : records) {
    totals.chunks = AddSaturating(totals.chunks, record.chunks);
    totals.bytes = AddSaturating(totals.bytes, record.bytes);
    // Host samples are not the events that a capture was made for; their bytes count all the same.
    if (record.identity.kind == StreamKind::kHost) continue;
    totals.events = AddSaturating(totals.events, record.events);
    totals.events_lost = AddSaturating(totals.events_lost, record.events_lost());
    totals.events_lost_unknown = totals.events_lost_unknown || record.has_unknown_losses();
    totals.events_expired = AddSaturating(totals.events_expired, record.events_expired());
  }
  return totals;
}

absl::StatusOr<std::vector<StreamRecord>> CaptureReader::Streams() const {
  ASSIGN_OR_RETURN(std::vector<StreamRecord> records, StoredRecords());
  const InventoryStore inventory(*database_);
  absl::flat_hash_map<WorkerIdentity, WorkerInfo> infos;
  for (StreamRecord& record : records) {
    if (record.identity.kind != StreamKind::kNeuronCore) continue;
    // All cores of a worker share one look-up; one that was never seen stays an empty WorkerInfo.
    const auto [it, is_new] = infos.try_emplace(record.identity.worker);
    if (is_new) {
      auto worker = inventory.Worker(record.identity.worker);
      if (worker.ok()) it->second = std::move(worker->info);
      if (!worker.ok() && !absl::IsNotFound(worker.status())) return worker.status();
    }
    record.job = it->second.job;
    for (const CoreInfo& core : it->second.cores) {
      if (core.nc_idx == record.identity.nc_idx) {
        record.evidence = NewestResolution(core.rank_evidence, std::move(record.evidence));
      }
    }
  }
  return records;
}

}  // namespace neurontrace
