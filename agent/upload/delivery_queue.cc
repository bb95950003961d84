// SPDX-License-Identifier: Apache-2.0
#include "agent/upload/delivery_queue.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cassert>

#include "lib/base/status.h"
#include "lib/wire/chunk_envelope.h"

// An entry is in its stream's queue from Submit to PopStored. It is ready once the spool has it, or
// at once while there is no spool or its disk fails, and the uploader then decides when it is sent.
namespace neurontrace {
namespace {

// How much of one stream is read back at once. Bytes and chunks: one large read is cheaper than
// many, and a stream must not fill the memory.
constexpr uint64_t kLoadBytes = 512u << 10;
constexpr size_t kLoadChunks = 32;
// How often the disk is asked for a chunk that it does not return, before the chunk counts as lost.
constexpr uint8_t kLoadFailuresMax = 5;

}  // namespace

Chunk MakeLossChunk(ChunkHeader header, LossPlace place, LossReason reason, std::string detail) {
  // The events that were lost are those of the first loss; a replacement has none left to lose.
  if (!header.replaced) {
    header.replaced = Loss{.place = place,
                           .reason = reason,
                           .events = header.event_count,
                           .first_timestamp_ns = header.first_timestamp_ns,
                           .last_timestamp_ns = header.last_timestamp_ns,
                           .detail = detail.substr(0, limits::kDetailBytesMax)};
  }
  header.event_count = 0;
  // A replaced canary must not look as if it had travelled the whole way.
  header.canary_realtime_ns = 0;
  header.first_timestamp_ns = header.last_timestamp_ns = 0;
  header.columns_bytes = 0;
  return {std::move(header), ""};
}

DeliveryQueue::DeliveryQueue(Spool* spool, size_t bytes_max)
    : spool_(spool), bytes_max_(bytes_max) {
  assert(bytes_max_ > 0);
  if (spool_ != nullptr) spool_->SetListener(this);
}

DeliveryQueue::~DeliveryQueue() {
  if (spool_ != nullptr) spool_->SetListener(nullptr);
}

// --- The sources' side ---------------------------------------------------------------------------

bool DeliveryQueue::HasRoom(const CaptureId& capture_id) const {
  return !closed_ && unspooled_bytes_ < bytes_max_ &&
         (spool_ == nullptr || !spool_->IsFullFor(capture_id));
}

StreamNumber DeliveryQueue::NumberOf(const ChunkHeader& header) {
  StreamKey key(header.capture_id, header.stream);
  StreamNumber& number = numbers_[key];
  // Numbers are never reused: an acknowledgement of an earlier stream must not reach a later one.
  if (number == 0) {
    number = ++last_number_;
    by_capture_[header.capture_id].insert(number);
    streams_[number].key = std::move(key);
  }
  return number;
}

void DeliveryQueue::Submit(Chunk chunk, Done done) {
  // Before anything may replace the chunk: the metric counts what sources closed.
  CountCore(chunk.header);
  Entry entry;
  entry.sequence = chunk.header.sequence;
  entry.events = chunk.header.event_count;
  entry.end_of_stream = chunk.header.end_of_stream;
  // Called for each receipt of the chunk; see ChunkSink::Receipt.
  entry.done = std::make_unique<Done>(std::move(done));
  // Sources stop at the budget (HasRoom), but a document that was begun is still handed over whole.
  if (unspooled_bytes_ >= 2 * bytes_max_) {
    ++counters_.chunks_refused_full;
    CountLost(LossPlace::kAgentQueue, LossReason::kFull, entry.events);
    entry.replaced = true;
    chunk = MakeLossChunk(std::move(chunk.header), LossPlace::kAgentQueue, LossReason::kFull,
                          "the agent's queue is full");
  }
  ++counters_.chunks_taken;
  const StreamNumber number = NumberOf(chunk.header);
  Add(number, std::move(entry), std::move(chunk), false);
}

void DeliveryQueue::Add(StreamNumber number, Entry entry, Chunk chunk, bool first) {
  Stream& stream = streams_[number];
  const CaptureId capture_id = std::get<CaptureId>(stream.key);
  assert(stream.entries.empty() || stream.entries.back().sequence < entry.sequence);
  stream.next_sequence = entry.sequence + 1;
  SetEnvelope(number, entry, std::move(chunk));
  stream.last_header = entry.envelope->header();
  ++chunks_;
  ++unspooled_chunks_;
  stream.entries.push_back(std::move(entry));
  if (spool_ != nullptr) {
    const SpoolTicket ticket{number, stream.entries.back().sequence};
    const auto& envelope = stream.entries.back().envelope;
    if (first) {
      spool_->AppendFirst(capture_id, ticket, envelope);
    } else {
      spool_->Append(capture_id, ticket, envelope);
    }
  }
  MakeReady(number, stream);
}

void DeliveryQueue::SetEnvelope(StreamNumber number, Entry& entry, Chunk chunk) {
  assert(number != 0);
  DropEnvelope(entry);
  entry.envelope = std::make_shared<v1::ChunkEnvelope>();
  ToEnvelope(std::move(chunk), StreamRef(number), entry.envelope.get());
  entry.envelope_bytes =
      static_cast<uint32_t>(sizeof(Entry) + sizeof(v1::ChunkEnvelope) +
                            entry.envelope->header().size() + entry.envelope->columns().size());
  (entry.place.segment == 0 ? unspooled_bytes_ : cached_bytes_) += entry.envelope_bytes;
}

// The memory is freed by the last holder, which may be a write that is under way.
void DeliveryQueue::DropEnvelope(Entry& entry) {
  if (entry.envelope == nullptr) return;
  size_t& bytes = entry.place.segment == 0 ? unspooled_bytes_ : cached_bytes_;
  assert(bytes >= entry.envelope_bytes);
  bytes -= entry.envelope_bytes;
  entry.envelope.reset();
}

// In order: a chunk becomes ready only when all before it are, since a stream is sent in order.
// While the disk fails everything is ready.
void DeliveryQueue::MakeReady(StreamNumber number, Stream& stream) {
  while (stream.ready < stream.entries.size() &&
         (!keeps() || stream.entries[stream.ready].place.segment != 0)) {
    ++stream.ready;
    if (listener_ != nullptr) listener_->OnReady(number);
  }
}

// --- Callbacks of the spool ----------------------------------------------------------------------

void DeliveryQueue::OnKept(const SpoolTicket& ticket, const SpoolPlace& place) {
  const size_t index = IndexOf(ticket.stream, ticket.sequence);
  if (index == size(ticket.stream) || at(ticket.stream, index).sequence != ticket.sequence) {
    spool_->Release(place);  // answered for meanwhile
    return;
  }
  Stream& stream = streams_[ticket.stream];
  Entry& entry = stream.entries[index];
  const bool sent = index < stream.ready;  // while the disk failed: refusals are about this copy
  assert(entry.place.segment == 0 && place.segment != 0 && entry.envelope != nullptr);
  assert(unspooled_bytes_ >= entry.envelope_bytes && unspooled_chunks_ > 0);
  unspooled_bytes_ -= entry.envelope_bytes;
  --unspooled_chunks_;
  entry.place = place;
  cached_bytes_ += entry.envelope_bytes;
  ++counters_.chunks_kept;
  stream.safe_header = entry.envelope->header();
  // Half of the budget is for chunks that need not be read back. The replacement of a refused
  // chunk, which the spool does not have, stays in memory.
  const bool same = entry.envelope->header().size() == place.header_bytes &&
                    entry.envelope->columns().size() == place.columns_bytes;
  if (cached_bytes_ > bytes_max_ / 2 && same && !sent) DropEnvelope(entry);
  MakeReady(ticket.stream, stream);
  // Last, as a receipt may submit the next chunk from within.
  if (entry.done != nullptr) (*entry.done)({Fate::kKept, ""});
}

void DeliveryQueue::OnHealth(const absl::Status& health) {
  if (health.ok()) return;
  // Chunks that wait for the disk are sent from memory while it fails.
  for (auto& [number, stream] : streams_) MakeReady(number, stream);
}

void DeliveryQueue::OnSegmentDropped(const CaptureId& capture_id, uint64_t segment) {
  // The chunks are already gone from the spool's books, so nothing is released here.
  const PrecedingGap gone{LossPlace::kSpool, LossReason::kOverwritten};
  for (const StreamNumber number : StreamsIn(capture_id)) {
    Stream& stream = streams_[number];
    bool some = false;
    // Only from the front: chunks of one stream are in segments in order, and the oldest segment
    // goes.
    while (!stream.entries.empty() && stream.entries.front().place.segment == segment) {
      some = true;
      // Before the entry goes, as the window counts by position in the queue.
      if (listener_ != nullptr) listener_->OnFirstDropped(number);
      Entry entry = std::move(stream.entries.front());
      stream.entries.pop_front();
      assert(stream.ready > 0);
      --stream.ready;
      ++counters_.chunks_dropped;
      TakeOut(entry);
      if (!entry.replaced) CountLost(gone.place, gone.reason, entry.events);
      SendReceipt(entry, {Fate::kLost, "dropped to make room in the spool"});
    }
    if (!some) continue;
    if (stream.entries.empty()) {
      ReplaceLast(number, gone);
    } else {
      stream.entries.front().gone = gone;
    }
  }
}

// Reports the last loss of a stream, and that it has ended, although no chunk follows.
void DeliveryQueue::ReplaceLast(StreamNumber number, const PrecedingGap& gone) {
  auto header = ParseChunkHeader(streams_[number].last_header);
  assert(header.ok());
  if (!header.ok()) return;  // never: it was written by this class, or read by the spool
  Chunk chunk = MakeLossChunk(*std::move(header), gone.place, gone.reason, "");
  Entry entry;
  entry.sequence = chunk.header.sequence;
  entry.end_of_stream = chunk.header.end_of_stream;
  entry.replaced = true;
  entry.gone = gone;
  Add(number, std::move(entry), std::move(chunk), true);
}

std::map<StreamIdentity, SpoolCursor::Stream> DeliveryQueue::StreamsOf(
    const CaptureId& capture_id) {
  std::map<StreamIdentity, SpoolCursor::Stream> cursors;
  // Cursors first name what is safe, then what is still queued: a stream that has chunks here
  // starts with the first of them.
  for (const StreamNumber number : StreamsIn(capture_id)) LearnFrom(streams_[number]);
  if (const auto behind = behind_.find(capture_id); behind != behind_.end()) {
    for (const auto& [identity, cursor] : behind->second) {
      // Streams without a chunk here, also those that have ended, must be resumable too.
      cursors[identity] = {cursor.next_sequence, std::nullopt, cursor};
    }
  }
  for (const StreamNumber number : StreamsIn(capture_id)) {
    const Stream& stream = streams_[number];
    SpoolCursor::Stream& cursor = cursors[std::get<StreamIdentity>(stream.key)];
    cursor.next_sequence =
        stream.entries.empty() ? stream.next_sequence : stream.entries.front().sequence;
    if (!stream.entries.empty()) cursor.gone = stream.entries.front().gone;
  }
  return cursors;
}

// --- The uploader's side -------------------------------------------------------------------------

size_t DeliveryQueue::size(StreamNumber stream) const {
  const auto it = streams_.find(stream);
  return it == streams_.end() ? 0 : it->second.entries.size();
}

size_t DeliveryQueue::ready(StreamNumber stream) const {
  const auto it = streams_.find(stream);
  return it == streams_.end() ? 0 : it->second.ready;
}

DeliveryQueue::Entry& DeliveryQueue::at(StreamNumber stream, size_t index) {
  const auto it = streams_.find(stream);
  assert(it != streams_.end() && index < it->second.entries.size());
  return it->second.entries[index];
}

size_t DeliveryQueue::IndexOf(StreamNumber stream, uint64_t sequence) const {
  const auto it = streams_.find(stream);
  if (it == streams_.end()) return 0;
  const std::deque<Entry>& entries = it->second.entries;
  const auto found =
      std::lower_bound(entries.begin(), entries.end(), sequence,
                       [](const Entry& entry, uint64_t wanted) { return entry.sequence < wanted; });
  return static_cast<size_t>(found - entries.begin());
}

StreamNumber DeliveryQueue::Find(const CaptureId& capture_id, const StreamIdentity& stream) const {
  const auto it = numbers_.find(StreamKey(capture_id, stream));
  return it == numbers_.end() ? 0 : it->second;
}

uint64_t DeliveryQueue::stored_before(StreamNumber stream) const {
  const auto it = streams_.find(stream);
  return it == streams_.end() ? 0 : it->second.stored_before;
}

bool DeliveryQueue::PopStored(StreamNumber number) {
  const auto it = streams_.find(number);
  assert(it != streams_.end() && it->second.ready > 0);
  Stream& stream = it->second;
  Entry entry = std::move(stream.entries.front());
  assert(entry.sequence >= stream.stored_before);
  stream.entries.pop_front();
  --stream.ready;
  stream.stored_before = entry.sequence + 1;
  // Sent while the disk failed; a chunk that is kept was recorded before.
  if (entry.place.segment == 0 && entry.envelope != nullptr) {
    stream.safe_header = entry.envelope->header();
  }
  TakeOut(entry);
  const bool will_continue = !entry.end_of_stream || !stream.entries.empty();
  // The stream must be forgotten before receipts are given, which may submit to it again.
  if (!will_continue) Forget(number);
  if (entry.place.segment != 0) spool_->Release(entry.place);
  if (entry.replaced) {
    ++counters_.chunks_lost;
    SendReceipt(entry, {Fate::kLost, "lost; the loss is reported in the stream"});
  } else {
    ++counters_.chunks_stored;
    counters_.events_stored += entry.events;
    SendReceipt(entry, {Fate::kStored, ""});
  }
  return will_continue;
}

void DeliveryQueue::Drop(StreamNumber number, const std::string& reason) {
  const auto it = streams_.find(number);
  if (it == streams_.end()) return;
  // Moved out first: a receipt may submit a chunk of the same stream, which then gets a new number.
  std::deque<Entry> entries = std::move(it->second.entries);
  Forget(number);
  for (Entry& entry : entries) {
    TakeOut(entry);
    if (entry.place.segment != 0) spool_->Release(entry.place);
    ++counters_.chunks_lost;
    // The aggregator does not want any more of it.
    if (!entry.replaced) CountLost(LossPlace::kWireRefusal, LossReason::kRefused, entry.events);
    SendReceipt(entry, {Fate::kLost, reason, true});
  }
}

void DeliveryQueue::Replace(StreamNumber stream, Entry& entry, Chunk chunk) {
  assert(!entry.replaced && entry.envelope != nullptr);
  CountLost(LossPlace::kWireRefusal, LossReason::kRefused, entry.events);
  entry.replaced = true;
  if (spool_ != nullptr) {
    spool_->SetAside(chunk.header.capture_id, entry.sequence, entry.envelope);
  }
  // A new envelope, as the old one may still be on its way out. If the agent ends before it is
  // acknowledged, the next one is refused the original again, and replaces it too.
  SetEnvelope(stream, entry, std::move(chunk));
}

void DeliveryQueue::ForgetCapture(const CaptureId& capture_id) {
  by_capture_.erase(capture_id);
  behind_.erase(capture_id);
  resumed_.erase(capture_id);
  if (spool_ != nullptr) spool_->Forget(capture_id);
}

std::vector<StreamNumber> DeliveryQueue::StreamsIn(const CaptureId& capture_id) const {
  const auto it = by_capture_.find(capture_id);
  if (it == by_capture_.end()) return {};
  return {it->second.begin(), it->second.end()};
}

bool DeliveryQueue::Holds(const CaptureId& capture_id) const {
  const std::vector<StreamNumber> streams = StreamsIn(capture_id);
  return std::any_of(streams.begin(), streams.end(),
                     [this](StreamNumber number) { return size(number) > 0; });
}

std::set<CaptureId> DeliveryQueue::captures() const {
  std::set<CaptureId> ids;
  for (const auto& [capture_id, streams] : by_capture_) ids.insert(capture_id);
  return ids;
}

void DeliveryQueue::SendReceipt(Entry& entry, const Receipt& receipt) {
  if (entry.done != nullptr) (*entry.done)(receipt);
}

void DeliveryQueue::TakeOut(Entry& entry) {
  assert(chunks_ > 0 && (entry.place.segment != 0 || unspooled_chunks_ > 0));
  if (entry.place.segment == 0) --unspooled_chunks_;
  DropEnvelope(entry);
  --chunks_;
}

void DeliveryQueue::CountCore(const ChunkHeader& header) {
  if (header.stream.kind != StreamKind::kNeuronCore ||
      header.stream.nc_idx >= limits::kCoresPerWorkerMax) {
    return;
  }
  CoreCounters& core = cores_[header.stream.nc_idx];
  core.events += header.event_count;
  for (const Loss& loss : header.losses) core.events_lost += loss.events;
}

void DeliveryQueue::CountLost(LossPlace place, LossReason reason, uint64_t events) {
  counters_.events_lost += events;
  losses_.Add(place, reason, events);
}

void DeliveryQueue::Forget(StreamNumber number) {
  const auto it = streams_.find(number);
  assert(it != streams_.end());
  LearnFrom(it->second);
  const auto capture = by_capture_.find(std::get<CaptureId>(it->second.key));
  if (capture != by_capture_.end()) capture->second.erase(number);
  numbers_.erase(it->second.key);
  streams_.erase(it);
}

// --- Reading the spool: at the start, and when it is a chunk's turn to be sent -------------------

absl::Status DeliveryQueue::Recover() {
  if (spool_ == nullptr) return absl::OkStatus();
  // A failed attempt may have filled them.
  numbers_.clear();
  streams_.clear();
  by_capture_.clear();
  behind_.clear();
  chunks_ = 0;
  counters_.chunks_recovered = 0;
  // Of the capture whose chunks are being visited.
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
                       const SpoolPlace& place) { AddFound(cursor, header, place); }}));
  counters_.chunks_recovered = chunks_;
  uncertain_ = spool_->recovered().uncertain;
  // All chunks are known now; earlier, one could have been sent that a later copy replaces.
  for (auto& [number, stream] : streams_) MakeReady(number, stream);
  return absl::OkStatus();
}

void DeliveryQueue::AddFound(const SpoolCursor& cursor, const ChunkHeader& header,
                             const SpoolPlace& place) {
  assert(spool_ != nullptr && place.segment != 0);
  const PrecedingGap damaged{LossPlace::kSpool, LossReason::kMalformed};
  const StreamNumber number = NumberOf(header);
  Stream& stream = streams_[number];
  const auto known = cursor.streams.find(header.stream);
  const uint64_t first = known == cursor.streams.end() ? 0 : known->second.next_sequence;
  // A chunk can be on the disk twice, after a write that failed. Both copies have the same
  // sequence, and the later one counts.
  const size_t index = IndexOf(number, header.sequence);
  const bool again =
      index < stream.entries.size() && stream.entries[index].sequence == header.sequence;
  // The header of the last chunk is needed if that is lost; see ReplaceLast.
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
    // Without a cursor the first chunk's place in its stream is not known, so no gap can be
    // claimed.
    const bool has_cursor = index > 0 || known != cursor.streams.end();
    if (has_cursor && header.sequence != expected && !entry.gone) entry.gone = damaged;
  } else {
    // Written once more: after a write that failed, or to replace the chunk.
    spool_->Release(stream.entries[index].place);
  }
  Entry& entry = stream.entries[index];
  assert(entry.sequence == header.sequence);
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
    // A run of chunks that are neither in memory nor being read.
    if (entry.envelope != nullptr || entry.loading) break;
    assert(spool_ != nullptr && entry.place.segment != 0);
    entry.loading = true;
    sequences.push_back(entry.sequence);
    places.push_back(entry.place);
    bytes += entry.place.record_bytes();
  }
  if (places.empty()) return;
  spool_->Load(
      std::get<CaptureId>(it->second.key), std::move(places),
      [this, number, sequences = std::move(sequences)](const std::vector<LoadedChunk>& loaded) {
        HandleLoaded(number, sequences, loaded);
      });
}

void DeliveryQueue::HandleLoaded(StreamNumber number, const std::vector<uint64_t>& sequences,
                                 const std::vector<LoadedChunk>& loaded) {
  assert(loaded.size() == sequences.size());
  bool all = true;
  for (size_t i = 0; i < sequences.size(); ++i) {
    all = HandleOneLoaded(number, sequences[i], loaded[i]) && all;
  }
  if (listener_ != nullptr) listener_->OnLoaded(number, !all);
}

bool DeliveryQueue::HandleOneLoaded(StreamNumber number, uint64_t sequence,
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
  // Reading damaged bytes again gives the same; other errors of a disk may pass.
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
  const PrecedingGap gone{LossPlace::kSpool, LossReason::kMalformed};
  assert(index < stream.entries.size() && index < stream.ready);
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
  SendReceipt(entry, {Fate::kLost, std::string(why.message())});
  if (index < stream.entries.size()) {
    stream.entries[index].gone = gone;
  } else {
    ReplaceLast(number, gone);
  }
}

// --- Resuming ------------------------------------------------------------------------------------

// Where streams continue: by the aggregator's cursors and what is here, or, before the aggregator
// is reached, by the latter alone
// (docs/decisions/0012-captures-continue-without-the-aggregator.md).

void DeliveryQueue::Learn(const CaptureId& capture_id, const StreamCursor& cursor) {
  auto& streams = behind_[capture_id];
  if (streams.size() >= limits::kSpoolRunningStreamsMax && !streams.contains(cursor.stream)) {
    if (spool_ != nullptr) spool_->RecordUnsure(capture_id);
    return;
  }
  const auto [known, is_new] = streams.try_emplace(cursor.stream, cursor);
  if (!is_new && known->second.next_sequence < cursor.next_sequence) known->second = cursor;
}

void DeliveryQueue::LearnFrom(Stream& stream) {
  if (stream.safe_header.empty()) return;
  const auto header = ParseChunkHeader(std::exchange(stream.safe_header, {}));
  if (header.ok()) Learn(header->capture_id, CursorAfter(*header));
}

void DeliveryQueue::MergeCursors(const CaptureId& capture_id, std::vector<StreamCursor>& cursors) {
  for (const StreamCursor& cursor : cursors) {
    if (cursor.next_sequence > 0) Learn(capture_id, cursor);
  }
  if (spool_ != nullptr) spool_->RecordCursor(capture_id);
  for (const StreamNumber number : StreamsIn(capture_id)) {
    const auto header = ParseChunkHeader(streams_.at(number).last_header);
    if (!header.ok()) continue;
    // What is here continues behind the aggregator's cursor unless that is ahead.
    StreamCursor ours = CursorAfter(*header);
    const auto theirs = std::find_if(cursors.begin(), cursors.end(), [&](const StreamCursor& c) {
      return c.stream == ours.stream;
    });
    // The farther of the two decides where the source continues.
    if (theirs == cursors.end()) {
      cursors.push_back(std::move(ours));
    } else if (theirs->next_sequence < ours.next_sequence) {
      *theirs = std::move(ours);
    }
  }
  resumed_.erase(capture_id);
  // The loss is reported once for each stream, behind everything that is known of it.
  if (uncertain_.erase(capture_id) == 0) return;
  for (StreamCursor& cursor : cursors) {
    if (!cursor.ended) ReportUnknown(capture_id, cursor);
  }
}

std::vector<DeliveryQueue::Resumed> DeliveryQueue::HandleRunning() {
  std::vector<Resumed> captures;
  if (spool_ == nullptr) return captures;
  for (const auto& [capture_id, spec] : spool_->running()) {
    for (const StreamNumber number : StreamsIn(capture_id)) LearnFrom(streams_.at(number));
    Resumed& resumed = captures.emplace_back(Resumed{capture_id, spec, {}});
    auto& at = resumed_[capture_id];
    for (const auto& [identity, cursor] : behind_[capture_id]) {
      at[identity] = cursor.next_sequence;
      resumed.cursors.push_back(cursor);
    }
  }
  return captures;
}

void DeliveryQueue::RecordRunning(const CaptureId& capture_id, const CaptureSpec& spec) {
  if (spool_ != nullptr) spool_->RecordRunning(capture_id, spec);
}

bool DeliveryQueue::WasWrong(const CaptureId& capture_id,
                             const std::vector<StreamCursor>& cursors) {
  const auto resumed = resumed_.find(capture_id);
  if (resumed == resumed_.end()) return false;
  const bool wrong = std::any_of(cursors.begin(), cursors.end(), [&](const StreamCursor& cursor) {
    // A stream that was not resumed counts from 0: any chunk of it contradicts.
    const auto at = resumed->second.find(cursor.stream);
    return cursor.next_sequence > (at == resumed->second.end() ? 0 : at->second);
  });
  if (!wrong) return false;
  spdlog::error(
      "spool: capture {} was resumed from an old state; its data since this agent started is "
      "discarded",
      capture_id.ToString());
  resumed_.erase(resumed);
  uncertain_.insert(capture_id);
  return true;
}

// Chunks that were ready without being kept may have been sent, so the disk does not know of them.
// The spool asks before it records that captures can be resumed from its cursors.
bool DeliveryQueue::CursorsAreExact() {
  for (const auto& [number, stream] : streams_) {
    for (size_t i = 0; i < stream.ready; ++i) {
      if (stream.entries[i].place.segment == 0) return false;
    }
  }
  return true;
}

void DeliveryQueue::ReportUnknown(const CaptureId& capture_id, StreamCursor& cursor) {
  // The chunk has no events: it continues the stream's numbers and adds a loss of unknown size.
  const Loss loss{
      .place = LossPlace::kSpool, .reason = LossReason::kUnknown, .events_unknown = true};
  Chunk chunk;
  chunk.header.capture_id = capture_id;
  chunk.header.stream = cursor.stream;
  chunk.header.sequence = cursor.next_sequence++;
  chunk.header.source_position = cursor.source_position;
  chunk.header.source_skip = cursor.source_skip;
  chunk.header.events_before = cursor.events_before;
  chunk.header.losses_before = cursor.losses_before;
  chunk.header.sequence_mark = cursor.sequence_mark;
  chunk.header.losses.push_back(loss);
  chunk.header.losses.back().detail = "the agent's disk lost chunks that were kept on it";
  AddLoss(loss, cursor.losses_before);
  spdlog::error("spool: {} lost an unknown number of events", ToString(cursor.stream));
  Submit(std::move(chunk), [](const Receipt&) {});
}

}  // namespace neurontrace
