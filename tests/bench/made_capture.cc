// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/made_capture.h"

#include <fmt/format.h>

#include <algorithm>

#include "aggregator/timeline/event_script.h"
#include "lib/trace/event_chunk.h"

namespace neurontrace {
namespace {

constexpr uint64_t kMarginNs = 1'000;  // from a chunk's ends to the events of the crossing spans

struct MadeKind {
  const char* type;
  const char* first_key;
  const char* second_key;
};
constexpr MadeKind kKinds[] = {{"nrt_execute", "model_id", "queue"},
                               {"nc_exec_running", "exec_id", "device_core_idx"},
                               {"cc_running", "exec_id", "op_id"},
                               {"nrt_tensor_write", "tensor_id", "size"},
                               {"dmem_buf_copyin", "mem_handle", "size"}};

// Returns bits that look random and are the same in each run: the finaliser of SplitMix64
// (https://prng.di.unimi.it/splitmix64.c).
uint64_t VariedBits(uint64_t number) {
  number = (number + 1) * 0x9e3779b97f4a7c15u;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
  number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
  return number ^ (number >> 31);
}

}  // namespace

const std::string& MadeCapture::CrossingType() {
  static const std::string kType = "nrt_load";
  return kType;
}

std::vector<std::string> MadeCapture::EventTypes() {
  std::vector<std::string> types = {CrossingType()};
  for (const MadeKind& kind : kKinds) types.emplace_back(kind.type);
  return types;
}

StreamIdentity MadeCapture::IdentityOf(uint32_t stream) const {
  return {.agent_id = fmt::format("agent-{}", stream / 64),
          .worker = {fmt::format("i-{:04}", stream / 64), "boot", 100 + stream / 32, 1, ""},
          .kind = StreamKind::kNeuronCore,
          .nc_idx = stream % 32};
}

ChunkEntry MadeCapture::EntryOf(uint64_t sequence) const {
  const uint64_t begin_ns = kBaseNs + sequence * kChunkNs;
  ChunkEntry entry{.sequence = sequence,
                   .first_timestamp_ns = begin_ns + kMarginNs,
                   .last_timestamp_ns = begin_ns + kChunkNs - kMarginNs,
                   .event_count = events_per_chunk()};
  entry.foreign_stops.push_back({HashEventType(CrossingType()), sequence, begin_ns + kMarginNs});
  entry.event_types = EventTypes();
  return entry;
}

std::string MadeCapture::ColumnsOf(uint64_t sequence) const {
  EventChunkBuilder builder;
  EventScript script(builder);
  const uint64_t begin_ns = kBaseNs + sequence * kChunkNs;
  script.Stop(CrossingType(), begin_ns + kMarginNs, sequence, 7);
  const uint64_t step_ns = (kChunkNs - 4 * kMarginNs) / (spans + 1);
  for (uint64_t i = 0; i < spans; ++i) {
    const MadeKind& kind = kKinds[i % std::size(kKinds)];
    const uint64_t random = is_varied ? VariedBits(sequence * spans + i) : 0;
    const uint64_t at = begin_ns + 2 * kMarginNs + i * step_ns + random % (step_ns / 4);
    const uint64_t length_ns = step_ns / 2 - (random >> 32) % (step_ns / 4);
    script.Span(kind.type, at, at + length_ns, sequence * spans + i + 1, 7 + i % 3,
                {{kind.first_key, sequence * spans + i}, {kind.second_key, i % 17}});
  }
  script.Start(CrossingType(), begin_ns + kChunkNs - kMarginNs, sequence + 1, 7);
  return builder.Finish().bytes;
}

absl::StatusOr<CaptureDescription> MadeChunkSource::Describe() {
  CaptureDescription description;
  description.name = "made";
  for (uint32_t i = 0; i < capture_.streams; ++i) {
    StreamDescription stream{.number = i, .identity = capture_.IdentityOf(i)};
    stream.evidence = {
        {RankSource::kCommunicator, static_cast<int64_t>(i), capture_.streams, "made"}};
    stream.chunks = capture_.seconds;
    stream.events = capture_.seconds * capture_.events_per_chunk();
    stream.first_timestamp_ns = capture_.EntryOf(0).first_timestamp_ns;
    stream.last_timestamp_ns = capture_.EntryOf(capture_.seconds - 1).last_timestamp_ns;
    stream.chunk_span_max_ns = MadeCapture::kChunkNs;
    description.streams.push_back(std::move(stream));
  }
  return description;
}

absl::Status MadeChunkSource::ReadIndex(uint32_t, IndexPosition from, size_t entries_max,
                                        std::vector<ChunkEntry>& entries) {
  entries.clear();
  const uint64_t after_ns =
      from.last_timestamp_ns - std::min(from.last_timestamp_ns, MadeCapture::kBaseNs);
  for (uint64_t sequence = after_ns / MadeCapture::kChunkNs;
       sequence < capture_.seconds && entries.size() < entries_max; ++sequence) {
    ChunkEntry entry = capture_.EntryOf(sequence);
    const bool is_before =
        entry.last_timestamp_ns < from.last_timestamp_ns ||
        (entry.last_timestamp_ns == from.last_timestamp_ns && entry.sequence < from.sequence);
    if (!is_before) entries.push_back(std::move(entry));
  }
  return absl::OkStatus();
}

absl::Status MadeChunkSource::ReadColumns(uint32_t, uint64_t sequence, std::string& columns) {
  const auto known = made_.find(sequence);
  if (known != made_.end()) {
    columns = known->second;
    return absl::OkStatus();
  }
  if (made_.size() >= kKept) made_.erase(made_.begin());
  columns = made_.emplace(sequence, capture_.ColumnsOf(sequence)).first->second;
  return absl::OkStatus();
}

}  // namespace neurontrace
