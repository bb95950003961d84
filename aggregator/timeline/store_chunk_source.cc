// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/store_chunk_source.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "lib/base/status.h"
#include "lib/trace/event_chunk.h"
#include "lib/trace/expiry.h"

namespace neurontrace {
namespace {

// Chunks of one stream that one reading reports. Further ones are only skipped, so that a damaged
// store cannot make the set grow with the capture.
constexpr size_t kReportedMax = 65'536;

// Returns the processes that are known to have ended while the capture ran, and whether they had
// closed the runtime. A worker is also lost if one of its streams was; then it has losses.
std::map<WorkerIdentity, bool> EndedWorkers(const CaptureRecord& record) {
  std::map<WorkerIdentity, bool> ended;
  for (const CaptureWorkerStatus& worker : record.workers) {
    const bool has_died =
        worker.state == CaptureWorkerState::kLost && worker.obstacle != CaptureObstacle::kAgentLost;
    const bool has_closed = worker.worker_state == WorkerState::kClosed;
    if (!has_died && !has_closed && worker.obstacle != CaptureObstacle::kEnded) continue;
    ended[worker.worker] = has_closed && worker.state != CaptureWorkerState::kLost;
  }
  return ended;
}

// Translates a record of the store, without losses by expiry.
StreamDescription DescriptionOf(StreamRecord record) {
  StreamDescription stream;
  stream.number = record.number;
  stream.identity = std::move(record.identity);
  stream.job = std::move(record.job);
  stream.clock_domain = record.clock_domain;
  stream.evidence = std::move(record.evidence);
  // Expired data is missing by intention: exporters must not mark it as a loss. The certificate
  // reports how much has expired.
  std::ranges::copy_if(record.losses, std::back_inserter(stream.losses),
                       [](const Loss& loss) { return !IsExpiry(loss); });
  stream.gaps = std::move(record.gaps);
  stream.suspensions = std::move(record.suspensions);
  stream.chunks = record.chunks;
  stream.first_sequence = record.first_sequence;
  stream.next_sequence = record.next_sequence;
  stream.events = record.events;
  stream.first_timestamp_ns = record.first_timestamp_ns;
  stream.last_timestamp_ns = record.last_timestamp_ns;
  stream.canary_ns = record.canary_realtime_ns;
  stream.chunk_span_max_ns = record.chunk_span_max_ns;
  return stream;
}

// Types become hashes here, once for each entry, because the pairing compares them for each stop.
void Append(const ChunkIndexEntry& index, const ForeignStops& stops,
            std::vector<ChunkEntry>& entries) {
  ChunkEntry& entry = entries.emplace_back();
  entry.sequence = index.sequence;
  entry.first_timestamp_ns = index.first_timestamp_ns;
  entry.last_timestamp_ns = index.last_timestamp_ns;
  entry.event_count = index.event_count;
  std::vector<uint64_t> hashes;
  hashes.reserve(stops.event_types.size());
  for (const std::string& type : stops.event_types) hashes.push_back(HashEventType(type));
  entry.foreign_stops.reserve(stops.entries.size());
  for (const ForeignStops::Entry& stop : stops.entries) {
    entry.foreign_stops.push_back({hashes[stop.type], stop.tracking_id, stop.timestamp_ns});
  }
  if (stops.has_all_types) entry.event_types = stops.event_types;
}

}  // namespace

absl::StatusOr<CaptureDescription> StoreChunkSource::Describe() {
  CaptureDescription capture;
  capture.id = record_.id;
  capture.name = record_.spec.name;
  capture.warnings = record_.warnings;
  capture.warnings.insert(capture.warnings.end(), record_.end_warnings.begin(),
                          record_.end_warnings.end());
  ASSIGN_OR_RETURN(std::vector<StreamRecord> streams, reader_.Streams());
  const std::map<WorkerIdentity, bool> ended = EndedWorkers(record_);
  for (StreamRecord& stream : streams) {
    capture.streams.push_back(DescriptionOf(std::move(stream)));
    StreamDescription& last = capture.streams.back();
    const auto found = ended.find(last.identity.worker);
    if (found == ended.end()) continue;
    last.process_has_ended = true;
    last.has_closed_runtime = found->second;
  }
  return capture;
}

absl::Status StoreChunkSource::ReadIndex(uint32_t stream, IndexPosition from, size_t entries_max,
                                         std::vector<ChunkEntry>& entries) {
  entries.clear();
  const StreamReader reader = reader_.Stream(stream);
  if (index_ && reader.has_snapshot()) {
    reader.MoveIndex(*index_, from.last_timestamp_ns);
  } else {
    index_.emplace(reader.Index(from.last_timestamp_ns));
  }
  ChunkIndexIterator& it = *index_;
  // The store's iterator seeks by timestamp alone. Entries with the same last timestamp that the
  // caller has already seen are skipped by their sequence.
  for (; it.Valid() && entries.size() < entries_max; it.Next()) {
    const ChunkIndexEntry& entry = it.entry();
    if (entry.last_timestamp_ns == from.last_timestamp_ns && entry.sequence < from.sequence)
      continue;
    RETURN_IF_ERROR(it.ReadForeignStops(stops_));
    Append(entry, stops_, entries);
  }
  return it.status();
}

absl::Status StoreChunkSource::ReadColumns(uint32_t stream, uint64_t sequence,
                                           std::string& columns) {
  RETURN_IF_ERROR(reader_.Stream(stream).ReadChunk(sequence, chunk_));
  return UncompressColumns(chunk_.columns(), chunk_.columns_bytes(), columns);
}

void StoreChunkSource::ReportUnreadable(uint32_t stream, uint64_t sequence,
                                        const absl::Status& why) {
  Unreadable& known = unreadable_[stream];
  if (known.reported.size() >= kReportedMax || !known.reported.insert(sequence).second) return;
  const auto noted = reader_.Stream(stream).RecordUnreadable(
      sequence, known.noted + 1, fmt::format("chunk {}: {}", sequence, std::string(why.message())));
  if (noted.ok() && *noted) ++known.noted;
  if (noted.ok()) return;
  SPDLOG_WARN(
      "chunk {} of stream {} of capture {} cannot be read, and this fault cannot be recorded: {}",
      sequence, stream, record_.id.ToString(), std::string(noted.status().message()));
}

}  // namespace neurontrace
