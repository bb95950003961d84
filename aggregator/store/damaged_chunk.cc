// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/damaged_chunk.h"

#include <algorithm>
#include <string>
#include <utility>

#include "aggregator/store/chunk_frame.h"
#include "aggregator/store/keys.h"
#include "lib/base/status.h"

namespace neurontrace {

namespace {

// A chunk as the index describes it.
struct NamedChunk {
  std::string index_key;  // empty: the index has no entry for it
  ChunkIndexEntry entry;
};

// Scans the entries of the stream: the key begins with a timestamp, which only the damaged chunk
// holds. Damage is rare enough for that.
absl::StatusOr<NamedChunk> FindInIndex(const Database& database, const CaptureId& capture,
                                       uint32_t stream, uint64_t sequence) {
  NamedChunk found;
  const auto visit = [&](std::string_view key, std::string_view value) {
    const auto parsed = keys::ParseChunkIndex(key);
    if (!parsed) return DataLoss("malformed key of {} bytes in chunk_index", key.size());
    if (parsed->sequence != sequence) return absl::OkStatus();
    found.index_key = std::string(key);
    found.entry.last_timestamp_ns = parsed->last_timestamp_ns;
    return DecodeChunkIndexValue(value, found.entry, nullptr);
  };
  RETURN_IF_ERROR(database.ForEach(Family::kChunkIndex, keys::Stream(capture, stream), visit));
  return found;
}

}  // namespace

// Decides by reading again, since an error that a reader met may have passed.
absl::StatusOr<bool> IsDamaged(const Database& database, const CaptureId& capture, uint32_t stream,
                               uint64_t sequence) {
  const auto value = database.Get(Family::kChunks, keys::Chunk(capture, stream, sequence));
  if (value.ok()) return !ChunkFrame::Decode(*value).has_value();
  // An error other than damage, such as a busy disk, may pass.
  if (!absl::IsNotFound(value.status())) return absl::IsDataLoss(value.status());
  ASSIGN_OR_RETURN(const NamedChunk named, FindInIndex(database, capture, stream, sequence));
  return !named.index_key.empty();
}

// One batch, so the account of the stream closes before and after any crash.
absl::Status RemoveDamaged(Database& database, const CaptureId& capture, uint64_t sequence,
                           StreamRecord& record) {
  // A chunk without an entry had no events, so nothing but the chunk itself is lost.
  ASSIGN_OR_RETURN(const NamedChunk named, FindInIndex(database, capture, record.number, sequence));
  const ChunkIndexEntry& entry = named.entry;
  StreamRecord after = record;
  // Sums that a damaged record made too small must not wrap around.
  after.chunks -= std::min<uint64_t>(after.chunks, 1);
  after.events -= std::min<uint64_t>(after.events, entry.event_count);
  after.bytes -= std::min(after.bytes, entry.bytes);
  AddLoss({.place = LossPlace::kStore,
           .reason = LossReason::kMalformed,
           .events = entry.event_count,
           .first_timestamp_ns = entry.first_timestamp_ns,
           .last_timestamp_ns = entry.last_timestamp_ns,
           .detail = fmt::format("chunk {}", sequence)},
          // The events of the chunk move from the stored ones to the losses, as the index counted
          // them.
          after.losses);
  rocksdb::WriteBatch batch;
  batch.Delete(database.family(Family::kChunks), keys::Chunk(capture, record.number, sequence));
  if (!named.index_key.empty()) {
    batch.Delete(database.family(Family::kChunkIndex), named.index_key);
  }
  batch.Put(database.family(Family::kStreams), keys::Stream(capture, record.number),
            EncodeStreamRecord(after));
  RETURN_IF_ERROR(database.Write(batch, /*sync=*/true, "recording the loss of a damaged chunk"));
  record = std::move(after);
  return absl::OkStatus();
}

}  // namespace neurontrace
