// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/chunk_trim.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "aggregator/store/chunk_frame.h"
#include "aggregator/store/chunk_index_entry.h"
#include "aggregator/store/damaged_chunk.h"
#include "aggregator/store/database.h"
#include "aggregator/store/keys.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// How many sequences one step looks up one by one where an iterator met damage.
constexpr uint64_t kTrimProbesMax = 65'536;

// Selects the oldest chunks of a stream: a run from `first_sequence` on, without a gap. A record
// can express only such a run, so a chunk that came out of order waits for those received before
// it.
class Trim {
 public:
  Trim(Database& database, const CaptureId& capture, const TrimRequest& request,
       const StreamRecord& record)
      : database_(database),
        capture_(capture),
        request_(request),
        record_(record),
        end_(record.first_sequence) {}

  // Selects the run. Returns false if a damaged chunk ends it, see damaged().
  absl::StatusOr<bool> Choose() {
    RETURN_IF_ERROR(ByTime());
    if (!damaged_ && !IsEnough()) RETURN_IF_ERROR(BySequence());
    return !damaged_.has_value();
  }

  std::optional<uint64_t> damaged() const { return damaged_; }
  const Trimmed& trimmed() const { return trimmed_; }
  bool is_empty() const { return end_ == record_.first_sequence; }

  // Returns the record without the selected chunks. Their events become a loss by expiry, so the
  // account of the stream still adds up. Fails with the error of reading the index, which is needed
  // for the new first timestamp.
  absl::StatusOr<StreamRecord> Rest() const {
    StreamRecord rest = record_;
    rest.first_sequence = end_;
    // A record that damage made too small must not wrap around.
    rest.chunks -= std::min(rest.chunks, trimmed_.chunks);
    rest.events -= std::min(rest.events, trimmed_.events);
    rest.bytes -= std::min(rest.bytes, trimmed_.bytes);
    rest.expired_chunks += trimmed_.chunks;
    rest.expired_bytes += trimmed_.bytes;
    if (trimmed_.events == 0) return rest;
    AddLoss({.place = LossPlace::kRetention,
             .reason = LossReason::kExpired,
             .events = trimmed_.events,
             .first_timestamp_ns = first_ns_,
             .last_timestamp_ns = last_ns_},
            rest.losses);
    ASSIGN_OR_RETURN(rest.first_timestamp_ns, FirstOfRest());
    return rest;
  }

  // Adds the deletions of the chunks and of their index entries to the batch.
  void Write(rocksdb::WriteBatch& batch) {
    for (const uint64_t sequence : sequences_) {
      batch.Delete(database_.family(Family::kChunks), Key(sequence));
    }
    for (const ChunkIndexEntry& entry : entries_) {
      batch.Delete(
          database_.family(Family::kChunkIndex),
          keys::ChunkIndex(capture_, record_.number, entry.last_timestamp_ns, entry.sequence));
    }
  }

 private:
  std::string Key(uint64_t sequence) const {
    return keys::Chunk(capture_, record_.number, sequence);
  }
  // Bounds the time for which writers wait.
  bool IsEnough() const {
    return trimmed_.bytes >= request_.bytes_max || sequences_.size() >= request_.chunks_max;
  }

  // Takes index entries in the order of their last timestamps and, of these, the run of sequences
  // at the front. A stream's chunks are nearly in the order of their timestamps, so looking at a
  // few entries beyond the limit finds those that came late.
  absl::Status ByTime() {
    if (record_.events == 0 || request_.before_raw_ns == 0) return absl::OkStatus();
    std::vector<ChunkIndexEntry> old;
    uint64_t newer_sequence = UINT64_MAX;  // the lowest of those that stay
    uint32_t ahead = 0;
    RETURN_IF_ERROR(ForEachEntry([&](const ChunkIndexEntry& entry) {
      if (entry.sequence < record_.first_sequence) return true;  // expired earlier
      if (entry.last_timestamp_ns < request_.before_raw_ns && old.size() < request_.chunks_max) {
        old.push_back(entry);
        return true;
      }
      newer_sequence = std::min(newer_sequence, entry.sequence);
      return ++ahead < limits::kTrimLookahead && !old.empty();
    }));
    // The entries are sorted by time. A run needs them by sequence, and may not pass one that
    // stays.
    std::ranges::sort(old, {}, &ChunkIndexEntry::sequence);
    for (const ChunkIndexEntry& entry : old) {
      if (entry.sequence > newer_sequence || IsEnough()) break;
      ASSIGN_OR_RETURN(const bool is_free, PassHoles(entry.sequence));
      if (!is_free) break;
      Take(entry);
    }
    // More may follow if this step was ended by its size and not by what was requested.
    trimmed_.can_remove_more = IsEnough() && trimmed_.bytes < request_.bytes_max;
    return absl::OkStatus();
  }

  // Calls `visit` for each entry in the order of timestamps until it returns false. Fails with
  // DATA_LOSS for an entry that cannot be decoded.
  template <typename Visit>
  absl::Status ForEachEntry(Visit visit) const {
    const std::string prefix = keys::Stream(capture_, record_.number);
    const std::unique_ptr<rocksdb::Iterator> it(
        database_.db().NewIterator({}, database_.family(Family::kChunkIndex)));
    // Not from the stream's first key: the range before holds deleted keys until it is compacted,
    // and an iterator would walk over each of them.
    it->Seek(keys::ChunkIndex(capture_, record_.number, record_.first_timestamp_ns, 0));
    for (; it->Valid() && it->key().starts_with(prefix); it->Next()) {
      const auto key = keys::ParseChunkIndex(ToView(it->key()));
      if (!key) return DataLoss("malformed key of {} bytes in chunk_index", it->key().size());
      ChunkIndexEntry entry{.sequence = key->sequence, .last_timestamp_ns = key->last_timestamp_ns};
      RETURN_IF_ERROR(DecodeChunkIndexValue(ToView(it->value()), entry, nullptr));
      if (!visit(entry)) break;
    }
    return FromRocksDb(it->status(), "reading the chunk index");
  }

  // Moves the end of the run to `sequence`. No index entry before that one expires, but chunks
  // without events, which have none, may lie there and are taken. Returns false at a chunk with
  // events.
  absl::StatusOr<bool> PassHoles(uint64_t sequence) {
    const uint64_t from = end_;
    // A few look-ups are cheaper than an iterator, which would also meet deleted keys.
    if (sequence - from <= limits::kTrimHolesAsked) {
      for (uint64_t hole = from; hole < sequence; ++hole) {
        rocksdb::PinnableSlice value;
        const rocksdb::Status read =
            database_.db().Get({}, database_.family(Family::kChunks), Key(hole), &value);
        if (read.IsNotFound()) continue;
        ASSIGN_OR_RETURN(const bool taken, TakeRead(hole, read, ToView(value), false));
        if (!taken) return false;
      }
      end_ = sequence;
      return true;
    }
    ASSIGN_OR_RETURN(const bool passed, Walk(sequence, false));
    if (passed) end_ = sequence;
    return passed;
  }

  // Selects chunks below a sequence whatever their timestamps, which are then unknown: reads each
  // chunk.
  absl::Status BySequence() {
    const uint64_t until = std::min(request_.before_sequence, record_.next_sequence);
    if (until <= end_) return absl::OkStatus();
    ASSIGN_OR_RETURN(const bool all, Walk(until, true));
    if (all) end_ = until;
    trimmed_.can_remove_more = !all && trimmed_.bytes < request_.bytes_max;
    return absl::OkStatus();
  }

  // Takes the chunks from the end of the run to `until`. Returns false if it stopped before that.
  absl::StatusOr<bool> Walk(uint64_t until, bool with_events) {
    const std::string bound = Key(until);
    const rocksdb::Slice upper = ToSlice(bound);
    // Chunks that are about to go must not displace others from the block cache.
    rocksdb::ReadOptions options;
    options.fill_cache = false;
    options.iterate_upper_bound = &upper;
    const std::unique_ptr<rocksdb::Iterator> it(
        database_.db().NewIterator(options, database_.family(Family::kChunks)));
    for (it->Seek(Key(end_)); it->Valid(); it->Next()) {
      if (IsEnough()) return false;
      const auto key = keys::ParseChunk(ToView(it->key()));
      if (!key) return DataLoss("malformed key of {} bytes in chunks", it->key().size());
      ASSIGN_OR_RETURN(const bool taken, TakeRead(key->sequence, rocksdb::Status::OK(),
                                                  ToView(it->value()), with_events));
      if (!taken) return false;
    }
    if (it->status().IsCorruption()) return WalkOneByOne(until, with_events, it->status());
    RETURN_IF_ERROR(FromRocksDb(it->status(), "reading chunks"));
    return true;
  }

  // Looks up each sequence. An iterator does not report which chunk it could not read, and it may
  // have failed at a deleted one, in which case every look-up succeeds.
  absl::StatusOr<bool> WalkOneByOne(uint64_t until, bool with_events, const rocksdb::Status& met) {
    const uint64_t asked = std::min(until, end_ + kTrimProbesMax);
    for (uint64_t sequence = end_; sequence < asked; ++sequence) {
      if (IsEnough()) return false;
      const auto value = database_.Get(Family::kChunks, Key(sequence));
      if (absl::IsNotFound(value.status())) continue;
      if (absl::IsDataLoss(value.status())) {
        damaged_ = sequence;
        return false;
      }
      RETURN_IF_ERROR(value.status());
      ASSIGN_OR_RETURN(const bool taken,
                       TakeRead(sequence, rocksdb::Status::OK(), *value, with_events));
      if (!taken) return false;
    }
    if (asked == until) return true;
    if (is_empty()) return FromRocksDb(met, "looking for a damaged chunk");
    return false;
  }

  // Takes a chunk that was read. Returns false if the run ends before it.
  absl::StatusOr<bool> TakeRead(uint64_t sequence, const rocksdb::Status& read,
                                std::string_view value, bool with_events) {
    const auto frame = read.ok() ? ChunkFrame::Decode(value) : std::nullopt;
    if (!frame) {
      if (!read.ok() && !read.IsCorruption()) return FromRocksDb(read, "reading a chunk");
      damaged_ = sequence;
      return false;
    }
    ChunkIndexEntry entry{.sequence = sequence,
                          .first_timestamp_ns = frame->first_timestamp_ns,
                          .last_timestamp_ns = frame->last_timestamp_ns,
                          .event_count = frame->event_count,
                          .bytes = value.size() - ChunkFrame::kBytes};
    if (entry.event_count > 0) {
      if (!with_events) return false;
      Take(entry);
      return true;
    }
    sequences_.push_back(sequence);
    end_ = sequence + 1;
    // StreamRecord::Add has not counted the canary either.
    const bool is_canary = record_.canary_realtime_ns != 0 && sequence == record_.canary_sequence;
    if (is_canary) return true;
    ++trimmed_.chunks;
    trimmed_.bytes += entry.bytes;
    return true;
  }

  // Adds a chunk with events to the run.
  void Take(const ChunkIndexEntry& entry) {
    if (trimmed_.events == 0 || entry.first_timestamp_ns < first_ns_) {
      first_ns_ = entry.first_timestamp_ns;
    }
    last_ns_ = std::max(last_ns_, entry.last_timestamp_ns);
    ++trimmed_.chunks;
    trimmed_.events += entry.event_count;
    trimmed_.bytes += entry.bytes;
    sequences_.push_back(entry.sequence);
    entries_.push_back(entry);
    end_ = entry.sequence + 1;
  }

  // Returns the earliest timestamp among the chunks that stay. Looks no further than chunks of this
  // stream can overlap, by its longest chunk.
  absl::StatusOr<uint64_t> FirstOfRest() const {
    if (record_.events <= trimmed_.events) return record_.last_timestamp_ns;
    uint64_t first_ns = UINT64_MAX;
    uint32_t examined = 0;
    const auto goes = [this](const ChunkIndexEntry& entry) { return entry.sequence < end_; };
    RETURN_IF_ERROR(ForEachEntry([&](const ChunkIndexEntry& entry) {
      if (goes(entry)) return true;
      first_ns = std::min(first_ns, entry.first_timestamp_ns);
      const bool can_overlap =
          entry.last_timestamp_ns - std::min(entry.last_timestamp_ns, first_ns) <=
          record_.chunk_span_max_ns;
      return can_overlap && ++examined < limits::kTrimLookahead;
    }));
    return first_ns == UINT64_MAX ? record_.first_timestamp_ns : first_ns;
  }

  Database& database_;
  const CaptureId capture_;
  const TrimRequest& request_;
  const StreamRecord& record_;
  uint64_t end_;  // sequence after the run
  std::vector<uint64_t> sequences_;
  std::vector<ChunkIndexEntry> entries_;
  Trimmed trimmed_;
  uint64_t first_ns_ = 0;  // of the selected events, raw
  uint64_t last_ns_ = 0;
  std::optional<uint64_t> damaged_;  // where the run ended at an unreadable chunk
};

}  // namespace

void Trimmed::Add(const Trimmed& more) {
  chunks += more.chunks;
  events += more.events;
  bytes += more.bytes;
  damaged += more.damaged;
  can_remove_more = more.can_remove_more;
}

// Works on copies and changes `record` after each write, so a failed write leaves it as it is
// stored.
absl::StatusOr<Trimmed> TrimStream(Database& database, const CaptureId& capture,
                                   const TrimRequest& request, StreamRecord& record) {
  Trim trim(database, capture, request, record);
  ASSIGN_OR_RETURN(const bool all_read, trim.Choose());
  Trimmed trimmed = trim.trimmed();
  const bool is_empty = trim.is_empty();
  if (!is_empty) {
    ASSIGN_OR_RETURN(StreamRecord rest, trim.Rest());
    rocksdb::WriteBatch batch;
    trim.Write(batch);
    batch.Put(database.family(Family::kStreams), keys::Stream(capture, record.number),
              EncodeStreamRecord(rest));
    RETURN_IF_ERROR(database.Write(batch, /*sync=*/false, "deleting expired chunks"));
    record = std::move(rest);
  }
  // After the write above, so that the damaged chunk is the stream's first when it is removed.
  if (!all_read) {
    const absl::Status booked = RemoveDamaged(database, capture, *trim.damaged(), record);
    // Otherwise this step has progress to report, and the next one meets the damage again.
    if (!booked.ok() && is_empty) return booked;
    trimmed.damaged = booked.ok() ? 1 : 0;
    trimmed.can_remove_more = booked.ok();
  } else if (is_empty) {
    trimmed.can_remove_more = false;
  }
  return trimmed;
}

}  // namespace neurontrace
