// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/chunk_walk.h"

#include <memory>

#include "aggregator/store/keys.h"
#include "lib/base/status.h"
#include "lib/trace/store_limits.h"

namespace neurontrace {
namespace {

// The position of a walk.
struct WalkPlace {
  uint64_t next = 0;    // the sequence to continue with
  uint64_t misses = 0;  // look-ups without a result, over the whole walk
};

// Looks up each sequence from `next` on until one is damaged, and moves `next` behind it. Needed
// because an iterator does not report which chunk it could not read. Returns false if it finds
// none.
bool PassDamaged(const Database& database, const CaptureId& capture, uint32_t stream,
                 uint64_t sequence_end, const ChunkVisitor& visitor, WalkPlace& at) {
  for (uint64_t i = 0; i < limits::kChunkWalkProbesMax && at.next < sequence_end; ++i) {
    const uint64_t sequence = at.next;
    const auto value = database.Get(Family::kChunks, keys::Chunk(capture, stream, sequence));
    if (absl::IsNotFound(value.status()) && ++at.misses > limits::kChunkWalkMissesMax) return false;
    ++at.next;
    if (value.ok()) {
      visitor.chunk(sequence, *value);
    } else if (!absl::IsNotFound(value.status())) {
      visitor.damaged(sequence, value.status());
      return true;
    }
  }
  return false;
}

}  // namespace

// Alternates between a fast iterator and single look-ups past each damaged chunk. Without damage
// the cost is that of one scan.
absl::Status WalkChunks(const Database& database, const CaptureId& capture, uint32_t stream,
                        uint64_t sequence_end, const ChunkVisitor& visitor) {
  const std::string prefix = keys::Stream(capture, stream);
  // Every chunk is read once: no use for the cache, and large reads are faster.
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  options.readahead_size = size_t{1} << 20;
  // Without a bound the iterator could fail at a damaged chunk of the next stream, and nothing
  // would show that this stream is sound.
  const std::string end = keys::PrefixEnd(prefix);
  const rocksdb::Slice upper_bound = ToSlice(end);
  options.iterate_upper_bound = &upper_bound;
  const std::unique_ptr<rocksdb::Iterator> it(
      database.db().NewIterator(options, database.family(Family::kChunks)));
  WalkPlace at;
  while (true) {
    it->Seek(keys::Chunk(capture, stream, at.next));
    for (; it->Valid() && it->key().starts_with(ToSlice(prefix)); it->Next()) {
      const auto key = keys::ParseChunk(ToView(it->key()));
      if (!key) return DataLoss("malformed key of {} bytes in chunks", it->key().size());
      visitor.chunk(key->sequence, ToView(it->value()));
      if (key->sequence == UINT64_MAX) return absl::OkStatus();  // no sequence can follow
      at.next = key->sequence + 1;
    }
    const absl::Status status = FromRocksDb(it->status(), "reading chunks");
    if (status.ok()) return status;
    // The iterator has failed at or after `next`; the walk continues behind the chunk that failed.
    if (!PassDamaged(database, capture, stream, sequence_end, visitor, at)) return status;
  }
}

}  // namespace neurontrace
