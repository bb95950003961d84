// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/chunk_walk.h"

#include <memory>

#include "aggregator/store/keys.h"
#include "base/status.h"

namespace neurontrace {
namespace {

// How far behind the last chunk that could be read the next damaged one is looked for.
constexpr uint64_t kProbesMax = 65'536;

// An iterator does not say which chunk it could not read: looks at each from `next` on and moves
// `next` behind the damaged one. False where there is none.
bool PassDamaged(const Database& database, const CaptureId& capture, uint32_t stream,
                 uint64_t sequence_end, const ChunkVisitor& visitor, uint64_t& next) {
  for (uint64_t i = 0; i < kProbesMax && next < sequence_end; ++i) {
    const uint64_t sequence = next++;
    const auto value = database.Get(Family::kChunks, keys::Chunk(capture, stream, sequence));
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
  const std::unique_ptr<rocksdb::Iterator> it(
      database.db().NewIterator(options, database.family(Family::kChunks)));
  uint64_t next = 0;
  while (true) {
    it->Seek(keys::Chunk(capture, stream, next));
    for (; it->Valid() && it->key().starts_with(ToSlice(prefix)); it->Next()) {
      const auto key = keys::ParseChunk(ToView(it->key()));
      if (!key) return DataLoss("a key of {} bytes in chunks", it->key().size());
      visitor.chunk(key->sequence, ToView(it->value()));
      next = key->sequence + 1;
    }
    const absl::Status status = FromRocksDb(it->status(), "reading chunks");
    if (status.ok()) return status;
    if (!PassDamaged(database, capture, stream, sequence_end, visitor, next)) return status;
  }
}

}  // namespace neurontrace
