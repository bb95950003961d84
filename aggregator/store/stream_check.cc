// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/stream_check.h"

#include <algorithm>
#include <utility>

#include "aggregator/store/chunk_frame.h"
#include "aggregator/store/chunk_index_entry.h"
#include "aggregator/store/keys.h"
#include "base/crc32c.h"
#include "base/status.h"

namespace neurontrace {
namespace {

// How far behind the last chunk that could be read the next damaged one is looked for.
constexpr uint64_t kProbesMax = 65'536;

uint32_t Crc32cOf(std::string_view bytes) { return Crc32c(bytes.data(), bytes.size()); }

}  // namespace

void StreamCheck::Run(const std::function<void()>& step) {
  sums_.number = record_.number;
  sums_.identity = record_.identity;
  Chunks(step);
  Holes();
  Index();
  if (all_read_) Sums();
}

void StreamCheck::Chunks(const std::function<void()>& step) {
  const std::string prefix = keys::Stream(capture_, record_.number);
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> it(
      database_.db().NewIterator(options, database_.family(Family::kChunks)));
  while (true) {
    it->Seek(keys::Chunk(capture_, record_.number, next_));
    for (; it->Valid() && it->key().starts_with(ToSlice(prefix)); it->Next()) {
      step();
      const auto key = keys::ParseChunk(ToView(it->key()));
      if (!key) {
        on_fault_(std::nullopt, fmt::format("a key of {} bytes in chunks", it->key().size()));
        continue;
      }
      if (key->sequence > next_) holes_.push_back({next_, key->sequence});
      Chunk(key->sequence, ToView(it->value()));
      next_ = key->sequence + 1;
    }
    if (it->status().ok()) return;
    all_read_ = false;
    if (!PassDamage(FromRocksDb(it->status(), "reading chunks"))) return;
    step();
  }
}

// The iterator does not say which chunk it could not read.
bool StreamCheck::PassDamage(const absl::Status& status) {
  for (uint64_t i = 0; i < kProbesMax && next_ < record_.next_sequence; ++i, ++next_) {
    const auto value = database_.Get(Family::kChunks, keys::Chunk(capture_, record_.number, next_));
    if (absl::IsNotFound(value.status())) {
      holes_.push_back({next_, next_ + 1});
    } else if (value.ok()) {
      Chunk(next_, *value);
    } else {
      on_fault_(next_++, std::string(value.status().message()));
      return true;
    }
  }
  on_fault_(std::nullopt, std::string(status.message()));
  return false;
}

void StreamCheck::Chunk(uint64_t sequence, std::string_view value) {
  const auto chunk = Examined(sequence, value);
  if (!chunk.ok()) {
    all_read_ = false;
    on_fault_(sequence, std::string(chunk.status().message()));
    return;
  }
  sums_.Add(chunk->header, chunk->bytes(), std::nullopt);
  if (chunk->header.event_count == 0) return;
  expected_.push_back(
      {.last_timestamp_ns = chunk->header.last_timestamp_ns,
       .sequence = sequence,
       .value_crc32c = Crc32cOf(EncodeChunkIndexValue(chunk->header, chunk->foreign_stops))});
}

absl::StatusOr<ReceivedChunk> StreamCheck::Examined(uint64_t sequence,
                                                    std::string_view value) const {
  const auto frame = ChunkFrame::Decode(value);
  if (!frame) return DataLoss("its {} bytes are no chunk", value.size());
  const std::string_view rest = value.substr(ChunkFrame::kBytes);
  ASSIGN_OR_RETURN(ReceivedChunk chunk, examine_(rest.substr(0, frame->header_bytes),
                                                 rest.substr(frame->header_bytes), frame->crc32c));
  const ChunkHeader& header = chunk.header;
  if (header.capture_id != capture_ || header.stream != record_.identity ||
      header.sequence != sequence) {
    return DataLoss("its header is that of chunk {} of {} in capture {}", header.sequence,
                    ToString(header.stream), header.capture_id.ToString());
  }
  if (frame->event_count != header.event_count || frame->columns_bytes != header.columns_bytes ||
      frame->first_timestamp_ns != header.first_timestamp_ns ||
      frame->last_timestamp_ns != header.last_timestamp_ns) {
    return DataLoss("its frame and its header say different things");
  }
  return chunk;
}

// What was gone before it came has no chunk, and the record does not count one. A chunk that the
// record counts has to be there.
void StreamCheck::Holes() {
  if (all_read_ && record_.chunks <= sums_.chunks) return;
  if (sums_.next_sequence < record_.next_sequence && next_ < record_.next_sequence) {
    holes_.push_back({next_, record_.next_sequence});
  }
  for (const auto& [from, to] : holes_) {
    on_fault_(from, fmt::format("not there: the next one is {}", to));
  }
  if (!holes_.empty()) all_read_ = false;
}

void StreamCheck::Index() {
  std::sort(expected_.begin(), expected_.end());
  auto want = expected_.begin();
  const auto missing = [&] {
    on_fault_(want->sequence, "its index entry is not there");
    ++want;
  };
  const absl::Status status = database_.ForEach(
      Family::kChunkIndex, keys::Stream(capture_, record_.number),
      [&](std::string_view key_bytes, std::string_view value) {
        const auto key = keys::ParseChunkIndex(key_bytes);
        if (!key) return DataLoss("a key of {} bytes in chunk_index", key_bytes.size());
        const auto at = std::pair(key->last_timestamp_ns, key->sequence);
        while (want != expected_.end() && std::pair(want->last_timestamp_ns, want->sequence) < at) {
          missing();
        }
        if (want == expected_.end() || std::pair(want->last_timestamp_ns, want->sequence) != at) {
          // Of a chunk that could not be read, which was said already.
          if (all_read_) on_fault_(key->sequence, "an index entry without such a chunk");
        } else if ((want++)->value_crc32c != Crc32cOf(value)) {
          on_fault_(key->sequence, "its index entry says something else than its columns");
        }
        return absl::OkStatus();
      });
  if (!status.ok()) {
    on_fault_(std::nullopt, std::string(status.message()));
    return;
  }
  while (want != expected_.end()) missing();
}

void StreamCheck::Compare(std::string_view what, uint64_t stored, uint64_t from_chunks) {
  if (stored == from_chunks) return;
  on_fault_(std::nullopt,
            fmt::format("its record says {} {}, its chunks give {}", what, stored, from_chunks));
}

void StreamCheck::Sums() {
  Compare("next sequence", record_.next_sequence, sums_.next_sequence);
  Compare("source position", record_.source_position, sums_.source_position);
  Compare("source skip", record_.source_skip, sums_.source_skip);
  Compare("ended", record_.ended, sums_.ended);
  Compare("chunks", record_.chunks, sums_.chunks);
  Compare("events", record_.events, sums_.events);
  Compare("bytes", record_.bytes, sums_.bytes);
  Compare("first timestamp", record_.first_timestamp_ns, sums_.first_timestamp_ns);
  Compare("last timestamp", record_.last_timestamp_ns, sums_.last_timestamp_ns);
  Compare("longest chunk in ns", record_.chunk_span_max_ns, sums_.chunk_span_max_ns);
  Compare("lost events", record_.events_lost(), sums_.events_lost());
  Compare("captured events", record_.captured, sums_.captured);
  Compare("last canary", record_.canary_realtime_ns, sums_.canary_realtime_ns);
  if (!record_.Conserved()) {
    on_fault_(std::nullopt,
              fmt::format("its account does not close: {} captured, {} stored, {} lost",
                          record_.captured, record_.events, record_.events_lost()));
  }
  if (record_.evidence != sums_.evidence) {
    on_fault_(std::nullopt, "its record has other rank evidence than its chunks");
  }
}

}  // namespace neurontrace
