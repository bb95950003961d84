// SPDX-License-Identifier: Apache-2.0
// How the delivery queue reads the spool: at the start, and when a chunk's turn to be sent comes.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "agent/upload/delivery_queue.h"
#include "base/status.h"
#include "wire/chunk_envelope.h"

namespace neurontrace {
namespace {

// Read at once, of one stream.
constexpr uint64_t kLoadBytes = 512u << 10;
constexpr size_t kLoadChunks = 32;
// How often a disk is asked for a chunk that it does not give, before that is lost.
constexpr uint8_t kLoadFailuresMax = 5;

}  // namespace

absl::Status DeliveryQueue::Recover() {
  if (spool_ == nullptr) return absl::OkStatus();
  numbers_.clear();
  streams_.clear();
  by_capture_.clear();
  behind_.clear();
  chunks_ = 0;
  counters_.chunks_recovered = 0;
  SpoolCursor cursor;
  RETURN_IF_ERROR(spool_->Recover(
      {.on_capture =
           [&](const CaptureId& capture_id, const SpoolCursor& found) {
             by_capture_[capture_id];
             cursor = found;
             for (const auto& [identity, stream] : found.streams) {
               if (stream.behind) Learn(capture_id, *stream.behind);
             }
           },
       .on_chunk = [&](const ChunkHeader& header,
                       const SpoolPlace& place) { TakeFound(cursor, header, place); }}));
  counters_.chunks_recovered = chunks_;
  doubtful_ = spool_->recovered().doubtful;
  for (auto& [number, stream] : streams_) MakeReady(number, stream);
  return absl::OkStatus();
}

void DeliveryQueue::TakeFound(const SpoolCursor& cursor, const ChunkHeader& header,
                              const SpoolPlace& place) {
  const GoneBefore damaged{LossPlace::kSpool, LossReason::kMalformed};
  const StreamNumber number = NumberOf(header);
  Stream& stream = streams_[number];
  const auto known = cursor.streams.find(header.stream);
  const uint64_t first = known == cursor.streams.end() ? 0 : known->second.next_sequence;
  const size_t index = IndexOf(number, header.sequence);
  const bool again =
      index < stream.entries.size() && stream.entries[index].sequence == header.sequence;
  if (header.sequence >= stream.next_sequence || (again && index + 1 == stream.entries.size())) {
    stream.safe_header = stream.last_header = SerializeChunkHeader(header);
  }
  stream.next_sequence = std::max(stream.next_sequence, header.sequence + 1);
  if (header.sequence < first || (!again && index < stream.entries.size())) {
    spool_->Release(place);  // stored, or given up
    return;
  }
  if (!again) {
    Entry& entry = stream.entries.emplace_back();
    ++chunks_;
    entry.sequence = header.sequence;
    const uint64_t expected = index == 0 ? first : stream.entries[index - 1].sequence + 1;
    if (index == 0 && known != cursor.streams.end()) entry.gone = known->second.gone;
    const bool cursor_says = index > 0 || known != cursor.streams.end();
    if (cursor_says && header.sequence != expected && !entry.gone) entry.gone = damaged;
  } else {
    // Written once more: after a write that failed, or to stand in for the chunk.
    spool_->Release(stream.entries[index].place);
  }
  Entry& entry = stream.entries[index];
  entry.events = header.event_count;
  entry.end_of_stream = header.end_of_stream;
  entry.replaced = header.replaced.has_value();
  entry.place = place;
  entry.envelope_bytes =
      static_cast<uint32_t>(sizeof(Entry) + sizeof(v1::ChunkEnvelope)) + place.record_bytes();
}

void DeliveryQueue::Load(StreamNumber number, size_t index) {
  const auto it = streams_.find(number);
  if (it == streams_.end()) return;
  std::vector<uint64_t> sequences;
  std::vector<SpoolPlace> places;
  uint64_t bytes = 0;
  for (; index < it->second.ready && places.size() < kLoadChunks && bytes < kLoadBytes; ++index) {
    Entry& entry = it->second.entries[index];
    if (entry.envelope != nullptr || entry.loading) break;
    entry.loading = true;
    sequences.push_back(entry.sequence);
    places.push_back(entry.place);
    bytes += entry.place.record_bytes();
  }
  if (places.empty()) return;
  spool_->Load(
      std::get<CaptureId>(it->second.key), std::move(places),
      [this, number, sequences = std::move(sequences)](const std::vector<LoadedChunk>& loaded) {
        TakeLoaded(number, sequences, loaded);
      });
}

void DeliveryQueue::TakeLoaded(StreamNumber number, const std::vector<uint64_t>& sequences,
                               const std::vector<LoadedChunk>& loaded) {
  bool all = true;
  for (size_t i = 0; i < sequences.size(); ++i) {
    all = TakeOneLoaded(number, sequences[i], loaded[i]) && all;
  }
  if (listener_ != nullptr) listener_->OnLoaded(number, !all);
}

bool DeliveryQueue::TakeOneLoaded(StreamNumber number, uint64_t sequence,
                                  const LoadedChunk& loaded) {
  const size_t index = IndexOf(number, sequence);
  if (index == size(number)) return true;
  Entry& entry = at(number, index);
  if (entry.sequence != sequence || entry.envelope != nullptr) return true;
  entry.loading = false;
  if (loaded.status.ok()) {
    entry.envelope = loaded.envelope;
    entry.envelope->set_stream_ref(StreamRef(number));
    cached_bytes_ += entry.envelope_bytes;
    return true;
  }
  const bool final = absl::IsDataLoss(loaded.status) || absl::IsNotFound(loaded.status);
  if (!final && ++entry.load_failures < kLoadFailuresMax) return false;
  ++counters_.chunks_damaged;
  auto header =
      loaded.envelope == nullptr ? loaded.status : ParseChunkHeader(loaded.envelope->header());
  if (!header.ok()) {
    LoseUnreadable(number, index, header.status());
    return true;
  }
  spdlog::error("spool: {} events of {} are lost: {}", entry.events, ToString(header->stream),
                std::string(loaded.status.message()));
  CountLost(LossPlace::kSpool, LossReason::kMalformed, entry.events);
  entry.replaced = true;
  SetEnvelope(number, entry,
              MakeLossChunk(*std::move(header), LossPlace::kSpool, LossReason::kMalformed,
                            "damaged on the agent's disk"));
  return true;
}

void DeliveryQueue::LoseUnreadable(StreamNumber number, size_t index, const absl::Status& why) {
  Stream& stream = streams_[number];
  const GoneBefore gone{LossPlace::kSpool, LossReason::kMalformed};
  spdlog::error("spool: a chunk of {} is lost: {}", ToString(std::get<StreamIdentity>(stream.key)),
                std::string(why.message()));
  if (listener_ != nullptr) listener_->OnUnsentDropped(number);
  Entry entry = std::move(stream.entries[index]);
  stream.entries.erase(stream.entries.begin() + static_cast<std::ptrdiff_t>(index));
  --stream.ready;
  TakeOut(entry);
  spool_->Release(entry.place);
  if (!entry.replaced) CountLost(gone.place, gone.reason, entry.events);
  ++counters_.chunks_lost;
  GiveReceipt(entry, {Fate::kLost, std::string(why.message())});
  if (index < stream.entries.size()) {
    stream.entries[index].gone = gone;
  } else {
    StandInForLast(number, gone);
  }
}

}  // namespace neurontrace
