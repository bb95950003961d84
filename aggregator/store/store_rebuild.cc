// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/store_rebuild.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "aggregator/store/artifact_codec.h"
#include "aggregator/store/blob_scan.h"
#include "aggregator/store/chunk_frame.h"
#include "aggregator/store/chunk_index_entry.h"
#include "aggregator/store/chunk_walk.h"
#include "aggregator/store/clock_damage.h"
#include "aggregator/store/clock_evidence_rows.h"
#include "aggregator/store/clock_record.h"
#include "aggregator/store/database.h"
#include "aggregator/store/keys.h"
#include "aggregator/store/rebuild_swap.h"
#include "aggregator/store/record_codec.h"
#include "aggregator/store/store_files.h"
#include "aggregator/store/store_salvage.h"
#include "aggregator/store/stream_record.h"
#include "lib/base/status.h"
#include "lib/trace/expiry.h"
#include "lib/trace/ids.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// What a repair has booked as lost, with place store and reason malformed.
struct StreamLoss {
  uint64_t chunks = 0;
  uint64_t events = 0;
};

// Bounds the memory of a write batch.
constexpr int kEntriesPerWrite = 4'096;
constexpr PrecedingGap kDamaged = {LossPlace::kStore, LossReason::kMalformed};

// Repairs a stream: writes its index entries and its record again from its chunks, and deletes
// chunks that cannot be read or that `examine` finds damaged. What `known`, the earlier record,
// counts and no chunk holds is booked as lost; without `known` the accounts in the chunks show what
// is missing.
//
// Writes in batches of kEntriesPerWrite, without sync; the caller flushes. Nothing else may write
// the stream meanwhile.
class StreamRepair {
 public:
  StreamRepair(Database& database, const CaptureId& capture, uint32_t stream,
               const std::optional<StreamRecord>& known, const ExamineChunk& examine)
      : database_(database), capture_(capture), stream_(stream), known_(known), examine_(examine) {
    if (known_) BeginAfter(*known_);
  }

  // Fails with the first error of reading or writing.
  absl::StatusOr<StreamLoss> Run() {
    const std::string begin = keys::Stream(capture_, stream_);
    // Entries are written again only for chunks that pass, so those of damaged ones must not
    // remain.
    RETURN_IF_ERROR(
        FromRocksDb(database_.db().DeleteRange({}, database_.family(Family::kChunkIndex),
                                               ToSlice(begin), ToSlice(keys::PrefixEnd(begin))),
                    "repairing a stream"));
    const uint64_t end = known_ ? known_->next_sequence : UINT64_MAX;
    RETURN_IF_ERROR(WalkChunks(
        database_, capture_, stream_, end,
        {.chunk = [this](uint64_t sequence, std::string_view value) { Chunk(sequence, value); },
         .damaged = [this](uint64_t sequence, const absl::Status&) { Drop(sequence); }}));
    RETURN_IF_ERROR(write_);
    return Finish();
  }

 private:
  // What has expired is not damage, and chunks of it that are still in some file remain expired.
  void BeginAfter(const StreamRecord& known) {
    sums_.next_sequence = sums_.first_sequence = known.first_sequence;
    sums_.expired_chunks = known.expired_chunks;
    sums_.expired_bytes = known.expired_bytes;
    sums_.captured = known.events_expired();
    std::ranges::copy_if(known.losses, std::back_inserter(sums_.losses), IsExpiry);
  }

  // Chunks below first_sequence have expired and are no loss.
  void Drop(uint64_t sequence) {
    if (sequence >= sums_.first_sequence) ++loss_.chunks;
    batch_.Delete(database_.family(Family::kChunks), keys::Chunk(capture_, stream_, sequence));
    Written();
  }

  // Judges one chunk that could be read and adds it to the sums, or drops it.
  void Chunk(uint64_t sequence, std::string_view value) {
    const auto frame = ChunkFrame::Decode(value);
    if (!frame || sequence < sums_.first_sequence) return Drop(sequence);
    const std::string_view rest = value.substr(ChunkFrame::kBytes);
    const auto chunk = examine_(rest.substr(0, frame->header_bytes),
                                rest.substr(frame->header_bytes), frame->crc32c);
    // A sound chunk under the key of another one is damage of the key.
    if (!chunk.ok() || chunk->header.capture_id != capture_ || chunk->header.sequence != sequence) {
      return Drop(sequence);
    }
    const ChunkHeader& header = chunk->header;
    // A hole that the sender has not announced was made by the damage.
    const bool is_hole = sequence != sums_.next_sequence;
    if (sums_.chunks == 0) sums_.identity = header.stream;
    sums_.Add(header, chunk->bytes(),
              is_hole && !frame->gone_before ? std::optional(kDamaged) : frame->gone_before);
    if (header.event_count == 0) return;
    batch_.Put(database_.family(Family::kChunkIndex),
               keys::ChunkIndex(capture_, stream_, header.last_timestamp_ns, sequence),
               EncodeChunkIndexValue(header, chunk->bytes(), chunk->foreign_stops));
    Written();
  }

  // Writes the batch once it is large. An error is kept for Run, as visitors cannot return one.
  void Written() {
    if (batch_.Count() < kEntriesPerWrite || !write_.ok()) return;
    write_ = FromRocksDb(database_.db().Write({}, &batch_), "repairing a stream");
    batch_.Clear();
  }

  // Returns the record to store. An earlier record that has seen all of the chunks knows more than
  // they do: what was lost at the end of the stream, and why earlier chunks are missing.
  StreamRecord Record() {
    sums_.number = stream_;
    if (!known_ || known_->next_sequence < sums_.next_sequence) {
      for (const Loss& loss : sums_.losses) {
        if (loss.place == kDamaged.place && loss.reason == kDamaged.reason) {
          loss_.events = loss.events;
        }
      }
      return sums_;
    }
    StreamRecord record = *known_;
    loss_.events = record.events - std::min(record.events, sums_.events);
    // Chunks that were found damaged, or, if more, those that are simply gone.
    loss_.chunks = std::max(loss_.chunks, record.chunks - std::min(record.chunks, sums_.chunks));
    record.chunks = sums_.chunks;
    record.events = sums_.events;
    record.bytes = sums_.bytes;
    record.chunk_span_max_ns = sums_.chunk_span_max_ns;
    if (loss_.chunks > 0) {
      AddLoss({.place = kDamaged.place,
               .reason = kDamaged.reason,
               .events = loss_.events,
               .detail = fmt::format("{} chunks", loss_.chunks)},
              record.losses);
    }
    return record;
  }

  // Writes what is left of the batch together with the record.
  absl::StatusOr<StreamLoss> Finish() {
    const StreamRecord record = Record();
    const std::string key = keys::Stream(capture_, stream_);
    // No chunk is left and none is known to have existed.
    if (record.next_sequence == 0) {
      batch_.Delete(database_.family(Family::kStreams), key);
    } else {
      batch_.Put(database_.family(Family::kStreams), key, EncodeStreamRecord(record));
    }
    RETURN_IF_ERROR(FromRocksDb(database_.db().Write({}, &batch_), "repairing a stream"));
    return loss_;
  }

  Database& database_;
  const CaptureId capture_;
  const uint32_t stream_;
  const std::optional<StreamRecord>& known_;
  const ExamineChunk& examine_;
  StreamRecord sums_;
  StreamLoss loss_;
  rocksdb::WriteBatch batch_;
  absl::Status write_;
};

// Compares, by the index alone, the events of a stream's chunks with those its record counts.
absl::StatusOr<bool> IsStreamWhole(const Database& database, const CaptureId& capture,
                                   const StreamRecord& record) {
  uint64_t events = 0;
  RETURN_IF_ERROR(database.ForEach(Family::kChunkIndex, keys::Stream(capture, record.number),
                                   [&](std::string_view, std::string_view value) {
                                     ChunkIndexEntry entry;
                                     const auto status =
                                         DecodeChunkIndexValue(value, entry, nullptr);
                                     events += entry.event_count;
                                     return status;
                                   }));
  return events == record.events;
}

// Decodes every record of the small families; of the large ones only keys are checked.
absl::Status VerifyRecords(const Database& database) {
  RETURN_IF_ERROR(database.ForEach(
      Family::kCaptures, "", [](std::string_view key, std::string_view value) -> absl::Status {
        const auto id = CaptureId::FromBytes(key);
        if (!id.ok()) return DataLoss("malformed key of {} bytes in captures", key.size());
        return DecodeCaptureRecord(*id, value).status();
      }));
  RETURN_IF_ERROR(database.ForEach(
      Family::kStreams, "", [](std::string_view key, std::string_view value) -> absl::Status {
        const auto parsed = keys::ParseStream(key);
        if (!parsed) return DataLoss("malformed key of {} bytes in streams", key.size());
        return DecodeStreamRecord(parsed->stream, value).status();
      }));
  RETURN_IF_ERROR(database.ForEach(
      Family::kAgents, "",
      [](std::string_view, std::string_view value) { return DecodeAgentRecord(value).status(); }));
  RETURN_IF_ERROR(database.ForEach(
      Family::kWorkers, "",
      [](std::string_view, std::string_view value) { return DecodeWorkerRecord(value).status(); }));
  RETURN_IF_ERROR(database.ForEach(
      Family::kMeta, kEpochKeyPrefix,
      [](std::string_view, std::string_view value) { return DecodeEpoch(value).status(); }));
  RETURN_IF_ERROR(database.ForEach(Family::kClockModels, "",
                                   [](std::string_view key, std::string_view) -> absl::Status {
                                     if (keys::ParseClockModel(key)) return absl::OkStatus();
                                     return DataLoss("malformed key of {} bytes in {}", key.size(),
                                                     FamilyName(Family::kClockModels));
                                   }));
  // Values of evidence are checked by their readers, as there are many.
  return database.ForEach(Family::kClockObservations, "",
                          [](std::string_view key, std::string_view) -> absl::Status {
                            if (HostOfEvidenceKey(key)) return absl::OkStatus();
                            return DataLoss("malformed key of {} bytes in {}", key.size(),
                                            FamilyName(Family::kClockObservations));
                          });
}

// Keeps RocksDB from deleting files while they are verified: it compacts from the moment it is
// open.
class FilesStay {
 public:
  explicit FilesStay(rocksdb::DB& db) : db_(db), status_(db.DisableFileDeletions()) {}
  ~FilesStay() { db_.EnableFileDeletions(/*force=*/false).PermitUncheckedError(); }
  FilesStay(const FilesStay&) = delete;
  FilesStay& operator=(const FilesStay&) = delete;
  const rocksdb::Status& status() const { return status_; }

 private:
  rocksdb::DB& db_;
  const rocksdb::Status status_;
};

// Bytes of a write batch while the new database is filled.
constexpr size_t kWriteBytes = size_t{8} << 20;

// Adds a warning if there is room.
void Warn(CaptureRecord& record, std::string warning) {
  if (record.warnings.size() < limits::kCaptureWarningsMax) {
    record.warnings.push_back(std::move(warning));
  }
}

// Returns a record for a capture whose own was lost and whose chunks were found. It is incomplete,
// and a warning says why.
CaptureRecord MakePlaceholderCapture(const CaptureId& id) {
  CaptureRecord record;
  record.id = id;
  record.spec.name = "recovered";
  record.spec.filter.include_neuron = true;
  record.state = CaptureState::kIncomplete;
  Warn(record, "the capture's record was lost through disk damage and restored from its chunks");
  return record;
}

// Without sync: the caller flushes.
absl::Status PutCapture(Database& database, const CaptureRecord& record) {
  return database.Put(Family::kCaptures, keys::Capture(record.id), EncodeCaptureRecord(record),
                      false);
}

// Repairs streams and reports losses in `notes` and in the captures' warnings.
class Repairs {
 public:
  Repairs(Database& database, const ExamineChunk& examine, std::vector<std::string>& notes)
      : database_(database), examine_(examine), notes_(notes) {}

  // Repairs one stream. If anything was lost, adds a note, and a warning to its capture, whose
  // record must exist.
  absl::Status Stream(const CaptureId& capture, uint32_t stream,
                      const std::optional<StreamRecord>& known) {
    ASSIGN_OR_RETURN(const StreamLoss loss,
                     StreamRepair(database_, capture, stream, known, examine_).Run());
    if (loss.chunks == 0 && loss.events == 0) return absl::OkStatus();
    const std::string what =
        fmt::format("disk damage destroyed {} chunks with {} events of stream {}", loss.chunks,
                    loss.events, stream);
    notes_.push_back(fmt::format("capture {}: {}", capture.ToString(), what));
    const auto value = database_.Get(Family::kCaptures, keys::Capture(capture));
    if (!value.ok()) return value.status();
    ASSIGN_OR_RETURN(CaptureRecord record, DecodeCaptureRecord(capture, *value));
    Warn(record, what);
    return PutCapture(database_, record);
  }

 private:
  Database& database_;
  const ExamineChunk& examine_;
  std::vector<std::string>& notes_;
};

// Returns the captures and streams that keys of a family name, skipping from one to the next.
absl::StatusOr<std::set<std::pair<CaptureId, uint32_t>>> StreamsIn(const Database& database,
                                                                   Family family) {
  std::set<std::pair<CaptureId, uint32_t>> streams;
  const std::unique_ptr<rocksdb::Iterator> it(
      database.db().NewIterator({}, database.family(family)));
  it->SeekToFirst();
  while (it->Valid()) {
    const auto key = keys::ParseStream(ToView(it->key()).substr(0, CaptureId::kBytes + 4));
    if (!key)
      return DataLoss("malformed key of {} bytes in {}", it->key().size(), FamilyName(family));
    streams.emplace(key->capture, key->stream);
    SeekPastPrefix(*it, keys::Stream(key->capture, key->stream));
  }
  RETURN_IF_ERROR(FromRocksDb(it->status(), "looking for streams"));
  return streams;
}

// Copies what the old files hold into the new database; returns the records, which repairs need.
absl::StatusOr<SalvagedRecords> FillFromFiles(const std::string& path, rocksdb::Env& env,
                                              Database& database) {
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;  // Fill flushes before the new database counts
  rocksdb::WriteBatch batch;
  const auto write = [&] {
    const absl::Status status = FromRocksDb(database.db().Write(unlogged, &batch), "rebuilding");
    batch.Clear();
    return status;
  };
  const auto put = [&](Family family, std::string_view key, std::string_view value) {
    batch.Put(database.family(family), ToSlice(key), ToSlice(value));
    return batch.GetDataSize() < kWriteBytes ? absl::OkStatus() : write();
  };
  ASSIGN_OR_RETURN(SalvagedRecords records,
                   SalvageFiles(path, env,
                                {.chunk =
                                     [&](std::string_view key, std::string_view value) {
                                       if (!keys::ParseChunk(key)) return absl::OkStatus();
                                       return put(Family::kChunks, key, value);
                                     },
                                 .clock_evidence =
                                     [&](std::string_view key, std::string_view value) {
                                       return put(Family::kClockObservations, key, value);
                                     },
                                 // Readers find out which versions are complete.
                                 .clock_model =
                                     [&](std::string_view key, std::string_view value) {
                                       if (!keys::ParseClockModel(key)) return absl::OkStatus();
                                       return put(Family::kClockModels, key, value);
                                     },
                                 // ArtifactStore::Open removes those whose content is gone.
                                 .artifact =
                                     [&](std::string_view key, std::string_view value) {
                                       if (!IsArtifactEntry(key, value)) return absl::OkStatus();
                                       return put(Family::kArtifacts, key, value);
                                     }}));
  if (!records.aggregator_id.empty()) {
    batch.Put(database.family(Family::kMeta), "aggregator_id", records.aggregator_id);
  }
  if (!records.clock_record.empty()) {
    batch.Put(database.family(Family::kMeta), ToSlice(kClockRecordKey), records.clock_record);
  }
  for (const auto& [key, value] : records.epochs) {
    batch.Put(database.family(Family::kMeta), key, value);
  }
  for (const auto& [key, value] : records.agents) {
    batch.Put(database.family(Family::kAgents), key, value);
  }
  for (const auto& [key, value] : records.workers) {
    batch.Put(database.family(Family::kWorkers), key, value);
  }
  for (const auto& [id, record] : records.captures) {
    batch.Put(database.family(Family::kCaptures), keys::Capture(id), EncodeCaptureRecord(record));
  }
  RETURN_IF_ERROR(write());
  return records;
}

// Builds the new database: first everything that can be copied, then each stream repaired from its
// chunks, as index entries and records have to agree with the chunks that were found.
absl::Status Fill(const std::string& path, rocksdb::Env& env, Database& database,
                  const StoreRepair& repair, std::vector<std::string>& notes) {
  ASSIGN_OR_RETURN(const SalvagedRecords records, FillFromFiles(path, env, database));
  ASSIGN_OR_RETURN(auto streams, StreamsIn(database, Family::kChunks));
  for (const auto& [id, record] : records.streams) streams.insert(id);
  Repairs repairs(database, repair.examine, notes);
  // Streams are sorted by capture, so remembering the last one writes each missing record once.
  CaptureId last;
  for (const auto& [capture, stream] : streams) {
    if (!records.captures.contains(capture)) {
      if (records.captures_complete) {  // deleted; its chunks had not left their files yet
        const std::string begin = keys::Stream(capture, stream);
        RETURN_IF_ERROR(
            FromRocksDb(database.db().DeleteRange({}, database.family(Family::kChunks),
                                                  ToSlice(begin), ToSlice(keys::PrefixEnd(begin))),
                        "rebuilding"));
        continue;
      }
      if (capture != last) RETURN_IF_ERROR(PutCapture(database, MakePlaceholderCapture(capture)));
      last = capture;
    }
    const auto known = records.streams.find({capture, stream});
    RETURN_IF_ERROR(repairs.Stream(
        capture, stream,
        known == records.streams.end() ? std::nullopt : std::optional(known->second)));
  }
  RETURN_IF_ERROR(DropBrokenClockModels(database));
  RETURN_IF_ERROR(RememberClockDamage(database, records.clocks, repair.are_clocks_final, notes));
  notes.push_back(fmt::format("rebuilt: {} captures, {} streams; {} places could not be read",
                              records.captures.size(), streams.size(), records.damaged));
  return database.Flush();
}

// Builds the new database beside the damaged one and swaps them, under the lock of the old one.
absl::Status Rebuild(const std::string& path, rocksdb::Env& env, const StoreRepair& repair,
                     std::vector<std::string>& notes) {
  rocksdb::FileLock* lock = nullptr;
  RETURN_IF_ERROR(FromRocksDb(env.LockFile(path + "/LOCK", &lock), "rebuilding the store " + path));
  const auto unlock = [&env](rocksdb::FileLock* held) { env.UnlockFile(held); };
  const std::unique_ptr<rocksdb::FileLock, decltype(unlock)> held(lock, unlock);
  ASSIGN_OR_RETURN(const std::string scratch, BeginRebuilding(path, env));
  {
    // Closed before the swap, which moves its files.
    ASSIGN_OR_RETURN(const std::unique_ptr<Database> fresh, Database::Open(scratch, &env));
    RETURN_IF_ERROR(Fill(path, env, *fresh, repair, notes));
  }
  ASSIGN_OR_RETURN(const std::string aside, FinishRebuilding(path, env));
  notes.push_back(fmt::format(
      "the damaged files are in {}/{}; remove them when they are no longer needed", path, aside));
  return absl::OkStatus();
}

// Handles a log that lacked whole writes. A lost write can have held chunks with their entries and
// record, or a capture's record: any stream whose index and record disagree is repaired.
absl::Status Reconcile(Database& database, const StoreRepair& repair,
                       std::vector<std::string>& notes) {
  if (!repair.examine) return DataLoss("{}: its log is damaged", database.path());
  Repairs repairs(database, repair.examine, notes);
  ASSIGN_OR_RETURN(const auto streams, StreamsIn(database, Family::kStreams));
  for (const auto& [capture, stream] : streams) {
    if (absl::IsNotFound(database.Get(Family::kCaptures, keys::Capture(capture)).status())) {
      RETURN_IF_ERROR(PutCapture(database, MakePlaceholderCapture(capture)));
      notes.push_back(fmt::format("capture {}: its record was lost", capture.ToString()));
    }
    ASSIGN_OR_RETURN(const std::string value,
                     database.Get(Family::kStreams, keys::Stream(capture, stream)));
    ASSIGN_OR_RETURN(const StreamRecord record, DecodeStreamRecord(stream, value));
    ASSIGN_OR_RETURN(const bool whole, IsStreamWhole(database, capture, record));
    if (!whole) RETURN_IF_ERROR(repairs.Stream(capture, stream, record));
  }
  const ClockDamage clocks{.writes_lost = true};
  RETURN_IF_ERROR(RememberClockDamage(database, clocks, repair.are_clocks_final, notes));
  // The repair has to be on the disk before the note that asks for it goes.
  RETURN_IF_ERROR(database.Flush());
  return database.ForgetWalDamage();
}

// Fails with DATA_LOSS if RocksDB cannot open the files or any table or small record is damaged.
absl::StatusOr<std::unique_ptr<Database>> OpenVerified(const std::string& path, rocksdb::Env& env) {
  ASSIGN_OR_RETURN(std::unique_ptr<Database> database, Database::Open(path, &env));
  RETURN_IF_ERROR(VerifyTables(*database));
  return database;
}

// Returns the error of a store that a rebuild did not help. `futile_marker` is the file to remove.
absl::Status UnrebuildableError(const absl::Status& status, const std::string& futile_marker) {
  return DataLoss(
      "{}; it is still damaged after a rebuild: check the disk, then remove {} and start again to "
      "rebuild it once more",
      std::string(status.message()), futile_marker);
}

}  // namespace

// Cheap compared with reading all chunks, which would make each start as long as a check.
absl::Status VerifyTables(const Database& database) {
  const FilesStay files_stay(database.db());
  RETURN_IF_ERROR(FromRocksDb(files_stay.status(), "verifying tables"));
  std::vector<rocksdb::LiveFileMetaData> tables;
  database.db().GetLiveFilesMetaData(&tables);
  for (const rocksdb::LiveFileMetaData& table : tables) {
    RETURN_IF_ERROR(database.VerifyTable(table.name.substr(table.name.find_first_not_of('/'))));
  }
  rocksdb::ColumnFamilyMetaData chunks;
  database.db().GetColumnFamilyMetaData(database.family(Family::kChunks), &chunks);
  for (const rocksdb::BlobMetaData& blob : chunks.blob_files) {
    const std::string name = blob.blob_file_name.substr(blob.blob_file_name.find_first_not_of('/'));
    RETURN_IF_ERROR(CheckBlobFileEnds(database.path() + "/" + name, database.env()));
  }
  return VerifyRecords(database);
}

// Three stages: finish what an earlier start began, open or rebuild, and repair what a damaged log
// took.
absl::StatusOr<std::unique_ptr<Database>> OpenOrRebuild(const std::string& path, rocksdb::Env& env,
                                                        const StoreRepair& repair,
                                                        std::vector<std::string>& notes) {
  RETURN_IF_ERROR(ResumeRebuilding(path, env));
  const std::string futile_marker = fmt::format("{}/{}", path, kFutileRebuildFile);
  const bool was_futile = env.FileExists(futile_marker).ok();
  auto database = OpenVerified(path, env);
  // Any other error, such as a lock or a full disk, says nothing about the files: never rebuild
  // then.
  if (absl::IsDataLoss(database.status()) && repair.examine) {
    if (was_futile) return UnrebuildableError(database.status(), futile_marker);
    notes.push_back(std::string(database.status().message()));
    RETURN_IF_ERROR(Rebuild(path, env, repair, notes));
    database = OpenVerified(path, env);
    if (absl::IsDataLoss(database.status())) {
      const std::string text = std::string(database.status().message()) + "\n";
      RETURN_IF_ERROR(FromRocksDb(rocksdb::WriteStringToFile(&env, text, futile_marker, true),
                                  "recording that the rebuild failed"));
      return UnrebuildableError(database.status(), futile_marker);
    }
  }
  RETURN_IF_ERROR(database.status());
  if (was_futile) {
    RETURN_IF_ERROR(
        FromRocksDb(env.DeleteFile(futile_marker), "removing the note of a failed rebuild"));
  }
  for (const WalDamage& damage : (*database)->wal_damage()) {
    notes.push_back(fmt::format("log {}", damage.ToString()));
  }
  if ((*database)->has_wal_damage()) RETURN_IF_ERROR(Reconcile(**database, repair, notes));
  return database;
}

}  // namespace neurontrace
