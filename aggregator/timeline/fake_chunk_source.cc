// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/fake_chunk_source.h"

#include <algorithm>
#include <set>
#include <utility>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// The rule of the store's index, written independently of it. A multiset, because spans of one type
// and tracking id may nest.
std::vector<ForeignStop> FindForeignStops(const DecodedChunk& chunk) {
  std::multiset<std::pair<std::string_view, uint64_t>> open;
  std::vector<ForeignStop> found;
  for (size_t i = 0; i < chunk.size(); ++i) {
    const Shape& shape = chunk.shapes()[chunk.shape_of()[i]];
    const std::pair key(shape.event_type, chunk.tracking_id()[i]);
    if (shape.phase == Phase::kStart) open.insert(key);
    if (!EndsSpan(shape.phase)) continue;
    if (const auto it = open.find(key); it != open.end()) {
      open.erase(it);
    } else {
      found.push_back({HashEventType(shape.event_type), key.second, chunk.timestamp_ns()[i]});
    }
  }
  return found;
}

std::vector<std::string> FindEventTypes(const DecodedChunk& chunk) {
  std::set<std::string_view> types;
  for (const Shape& shape : chunk.shapes()) types.insert(shape.event_type);
  return {types.begin(), types.end()};
}

}  // namespace

uint32_t FakeChunkSource::AddStream(StreamIdentity identity, std::vector<RankEvidence> evidence) {
  const auto number = static_cast<uint32_t>(streams_.size());
  streams_.emplace_back();
  description_.streams.push_back(
      {.number = number, .identity = std::move(identity), .evidence = std::move(evidence)});
  return number;
}

void FakeChunkSource::AddChunk(uint32_t stream, EventChunkBuilder& builder) {
  AddColumns(stream, builder.Finish().bytes);
}

void FakeChunkSource::AddColumns(uint32_t stream, std::string_view columns) {
  StoredStream& stored = streams_[stream];
  StreamDescription& about = description_.streams[stream];
  ChunkEntry entry{.sequence = stored.chunks.size()};
  DecodedChunk chunk;
  if (const absl::Status status = chunk.Decode(columns); !status.ok()) std::abort();
  entry.event_count = static_cast<uint32_t>(chunk.size());
  if (entry.event_count > 0) {
    entry.first_timestamp_ns = chunk.timestamp_ns().front();
    entry.last_timestamp_ns = chunk.timestamp_ns().back();
    entry.foreign_stops = FindForeignStops(chunk);
    entry.event_types = FindEventTypes(chunk);
    about.first_timestamp_ns = about.events == 0
                                   ? entry.first_timestamp_ns
                                   : std::min(about.first_timestamp_ns, entry.first_timestamp_ns);
    about.last_timestamp_ns = std::max(about.last_timestamp_ns, entry.last_timestamp_ns);
    // Readers rely on this bound, see StreamDescription.
    about.chunk_span_max_ns =
        std::max(about.chunk_span_max_ns, entry.last_timestamp_ns - entry.first_timestamp_ns);
    stored.index.emplace(std::pair(entry.last_timestamp_ns, entry.sequence), entry);
  }
  about.events += entry.event_count;
  ++about.chunks;
  ++about.next_sequence;
  stored.chunks.push_back({CompressColumns(columns), static_cast<uint32_t>(columns.size()), false});
}

void FakeChunkSource::ForgetEventTypes() {
  for (StoredStream& stream : streams_) {
    for (auto& [position, entry] : stream.index) entry.event_types.reset();
  }
}

void FakeChunkSource::Lose(uint32_t stream, uint64_t sequence) {
  streams_[stream].chunks[sequence].is_lost = true;
}

std::string& FakeChunkSource::columns(uint32_t stream, uint64_t sequence) {
  return streams_[stream].chunks[sequence].compressed;
}

absl::Status FakeChunkSource::ReadIndex(uint32_t stream, IndexPosition from, size_t entries_max,
                                        std::vector<ChunkEntry>& entries) {
  entries.clear();
  const auto& index = streams_[stream].index;
  for (auto it = index.lower_bound({from.last_timestamp_ns, from.sequence});
       it != index.end() && entries.size() < entries_max; ++it) {
    entries.push_back(it->second);
  }
  ++index_reads_;
  entries_read_ += entries.size();
  return absl::OkStatus();
}

absl::Status FakeChunkSource::ReadColumns(uint32_t stream, uint64_t sequence,
                                          std::string& columns) {
  ++chunks_read_;
  const StoredChunk& chunk = streams_[stream].chunks[sequence];
  if (chunk.is_lost) return DataLoss("the chunk was lost");
  return UncompressColumns(chunk.compressed, chunk.columns_bytes, columns);
}

}  // namespace neurontrace
