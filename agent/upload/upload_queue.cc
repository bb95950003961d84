// SPDX-License-Identifier: Apache-2.0
#include "agent/upload/upload_queue.h"

#include <cassert>
#include <utility>

#include "wire/chunk_envelope.h"

namespace neurontrace {

Chunk MakeLossChunk(ChunkHeader header, LossPlace place, LossReason reason, std::string detail) {
  if (!header.replaced) {
    header.replaced = Loss{.place = place,
                           .reason = reason,
                           .events = header.event_count,
                           .first_timestamp_ns = header.first_timestamp_ns,
                           .last_timestamp_ns = header.last_timestamp_ns,
                           .detail = detail.substr(0, limits::kDetailBytesMax)};
  }
  header.event_count = 0;
  header.canary_realtime_ns = 0;
  header.first_timestamp_ns = header.last_timestamp_ns = 0;
  header.columns_bytes = 0;
  return {std::move(header), ""};
}

UploadQueue::UploadQueue(size_t bytes_max) : bytes_max_(bytes_max) {}

size_t UploadQueue::Entry::bytes() const {
  return sizeof(Entry) + sizeof(v1::ChunkEnvelope) + envelope->header().size() +
         envelope->columns().size();
}

void UploadQueue::Submit(Chunk chunk, Done done) {
  CountCore(chunk.header);
  Entry entry;
  entry.sequence = chunk.header.sequence;
  entry.events = chunk.header.event_count;
  entry.end_of_stream = chunk.header.end_of_stream;
  entry.done = std::move(done);
  if (bytes_ >= 2 * bytes_max_) {
    ++counters_.chunks_refused_full;
    counters_.events_lost += entry.events;
    entry.replaced = true;
    chunk = MakeLossChunk(std::move(chunk.header), LossPlace::kAgentQueue, LossReason::kFull,
                          "the agent's queue is full");
  }
  StreamKey key(chunk.header.capture_id, chunk.header.stream);
  StreamNumber& number = numbers_[key];
  if (number == 0) {
    number = ++last_number_;
    streams_[number].key = std::move(key);
  }
  entry.envelope = std::make_shared<v1::ChunkEnvelope>();
  ToEnvelope(std::move(chunk), StreamRef(number), entry.envelope.get());
  bytes_ += entry.bytes();
  ++chunks_;
  ++counters_.chunks_taken;
  streams_[number].entries.push_back(std::move(entry));
  if (on_chunk_) on_chunk_(number);
}

size_t UploadQueue::size(StreamNumber stream) const {
  const auto it = streams_.find(stream);
  return it == streams_.end() ? 0 : it->second.entries.size();
}

UploadQueue::Entry& UploadQueue::at(StreamNumber stream, size_t index) {
  const auto it = streams_.find(stream);
  assert(it != streams_.end() && index < it->second.entries.size());
  return it->second.entries[index];
}

bool UploadQueue::PopStored(StreamNumber stream) {
  const auto it = streams_.find(stream);
  assert(it != streams_.end() && !it->second.entries.empty());
  Entry entry = std::move(it->second.entries.front());
  it->second.entries.pop_front();
  bytes_ -= entry.bytes();
  --chunks_;
  const bool goes_on = !entry.end_of_stream || !it->second.entries.empty();
  if (!goes_on) Forget(stream);
  if (entry.replaced) {
    ++counters_.chunks_lost;
    if (entry.done) entry.done({false, "lost on the way; the stream says so"});
  } else {
    ++counters_.chunks_stored;
    counters_.events_stored += entry.events;
    if (entry.done) entry.done({true, ""});
  }
  return goes_on;
}

void UploadQueue::Drop(StreamNumber stream, const std::string& reason) {
  const auto it = streams_.find(stream);
  if (it == streams_.end()) return;
  std::deque<Entry> entries = std::move(it->second.entries);
  Forget(stream);
  for (Entry& entry : entries) {
    bytes_ -= entry.bytes();
    --chunks_;
    ++counters_.chunks_lost;
    if (!entry.replaced) counters_.events_lost += entry.events;
    if (entry.done) entry.done({false, reason});
  }
}

void UploadQueue::Replace(StreamNumber stream, Entry& entry, Chunk chunk) {
  bytes_ -= entry.bytes();
  counters_.events_lost += entry.events;
  entry.replaced = true;
  // A new envelope: the old one may still be on its way out.
  entry.envelope = std::make_shared<v1::ChunkEnvelope>();
  ToEnvelope(std::move(chunk), StreamRef(stream), entry.envelope.get());
  bytes_ += entry.bytes();
}

std::vector<StreamNumber> UploadQueue::StreamsOf(const CaptureId& capture_id) const {
  std::vector<StreamNumber> numbers;
  for (const auto& [number, stream] : streams_) {
    if (std::get<CaptureId>(stream.key) == capture_id) numbers.push_back(number);
  }
  return numbers;
}

void UploadQueue::CountCore(const ChunkHeader& header) {
  if (header.stream.kind != StreamKind::kNeuronCore ||
      header.stream.nc_idx >= limits::kCoresPerWorkerMax) {
    return;
  }
  CoreCounters& core = cores_[header.stream.nc_idx];
  core.events += header.event_count;
  for (const Loss& loss : header.losses) core.events_lost += loss.events;
}

void UploadQueue::Forget(StreamNumber number) {
  const auto it = streams_.find(number);
  numbers_.erase(it->second.key);
  streams_.erase(it);
}

}  // namespace neurontrace
