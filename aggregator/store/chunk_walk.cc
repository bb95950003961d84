// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/chunk_walk.h"

#include <memory>

#include "aggregator/store/keys.h"
#include "lib/base/status.h"
#include "lib/trace/store_limits.h"

namespace neurontrace {
namespace {

// Where a walk is.
struct WalkPlace {
  uint64_t next = 0;  // sequence
  uint64_t misses = 0;
};

// An iterator does not say which chunk it could not read: looks at each from `next` on and moves
// `next` behind the damaged one. False where there is none.
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

absl::Status WalkChunks(const Database& database, const CaptureId& capture, uint32_t stream,
                        uint64_t sequence_end, const ChunkVisitor& visitor) {
  const std::string prefix = keys::Stream(capture, stream);
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  options.readahead_size = size_t{1} << 20;
  // A step into the next stream could fail there, and it is not known where it failed.
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
      if (!key) return DataLoss("a key of {} bytes in chunks", it->key().size());
      visitor.chunk(key->sequence, ToView(it->value()));
      if (key->sequence == UINT64_MAX) return absl::OkStatus();  // the last that can be
      at.next = key->sequence + 1;
    }
    const absl::Status status = FromRocksDb(it->status(), "reading chunks");
    if (status.ok()) return status;
    if (!PassDamaged(database, capture, stream, sequence_end, visitor, at)) return status;
  }
}

}  // namespace neurontrace
