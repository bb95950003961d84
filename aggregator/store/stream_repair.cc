// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/stream_repair.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "aggregator/store/chunk_frame.h"
#include "aggregator/store/chunk_index_entry.h"
#include "aggregator/store/chunk_walk.h"
#include "aggregator/store/keys.h"
#include "base/status.h"
#include "trace/expiry.h"

namespace neurontrace {
namespace {

constexpr int kEntriesPerWrite = 4'096;
constexpr GoneBefore kDamaged = {LossPlace::kStore, LossReason::kMalformed};

class StreamRepair {
 public:
  StreamRepair(Database& database, const CaptureId& capture, uint32_t stream,
               const std::optional<StreamRecord>& known, const ExamineChunk& examine)
      : database_(database), capture_(capture), stream_(stream), known_(known), examine_(examine) {
    if (known_) BeginBehind(*known_);
  }

  absl::StatusOr<StreamLoss> Run() {
    const std::string begin = keys::Stream(capture_, stream_);
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
  // What has expired is no damage, and what of it is still in some file has expired all the same.
  void BeginBehind(const StreamRecord& known) {
    sums_.next_sequence = sums_.first_sequence = known.first_sequence;
    sums_.expired_chunks = known.expired_chunks;
    sums_.expired_bytes = known.expired_bytes;
    sums_.captured = known.events_expired();
    std::ranges::copy_if(known.losses, std::back_inserter(sums_.losses), IsExpiry);
  }

  void Drop(uint64_t sequence) {
    if (sequence >= sums_.first_sequence) ++loss_.chunks;
    batch_.Delete(database_.family(Family::kChunks), keys::Chunk(capture_, stream_, sequence));
    Written();
  }

  void Chunk(uint64_t sequence, std::string_view value) {
    const auto frame = ChunkFrame::Decode(value);
    if (!frame || sequence < sums_.first_sequence) return Drop(sequence);
    const std::string_view rest = value.substr(ChunkFrame::kBytes);
    const auto chunk = examine_(rest.substr(0, frame->header_bytes),
                                rest.substr(frame->header_bytes), frame->crc32c);
    if (!chunk.ok() || chunk->header.capture_id != capture_ || chunk->header.sequence != sequence) {
      return Drop(sequence);
    }
    const ChunkHeader& header = chunk->header;
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

  void Written() {
    if (batch_.Count() < kEntriesPerWrite || !write_.ok()) return;
    write_ = FromRocksDb(database_.db().Write({}, &batch_), "repairing a stream");
    batch_.Clear();
  }

  // A record that has seen as many chunks as there are knows more than they do: what went at the
  // end, and where what is not there had gone.
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

  absl::StatusOr<StreamLoss> Finish() {
    const StreamRecord record = Record();
    const std::string key = keys::Stream(capture_, stream_);
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

}  // namespace

absl::StatusOr<StreamLoss> RepairStream(Database& database, const CaptureId& capture,
                                        uint32_t stream, const std::optional<StreamRecord>& known,
                                        const ExamineChunk& examine) {
  return StreamRepair(database, capture, stream, known, examine).Run();
}

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

}  // namespace neurontrace
