// SPDX-License-Identifier: Apache-2.0
#include "agent/upload/uploader.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "lib/wire/chunk_envelope.h"
#include "lib/wire/conversions.h"

// How it works: AckWindow decides whose turn it is, Pump sends one chunk at a time, and OnAck
// settles chunks or goes back. Each stream is sent in order; a refusal rewinds its stream and a
// lost call rewinds all of them, as in go-back-N protocols. The aggregator drops what it has
// already.
namespace neurontrace {
namespace {

// Delays between calls grow from the first to the longest; an acknowledgement resets them.
constexpr uint64_t kReconnectFirstNs = 100'000'000;
constexpr uint64_t kReconnectLongestNs = 10'000'000'000;
// With chunks under way and no answer for so long, the call is given up and restarted.
constexpr uint64_t kSilenceMaxNs = 30'000'000'000;
// How often the replacement of a refused chunk may be refused before its stream is abandoned.
constexpr uint8_t kReplacementsRefusedMax = 4;
// How often a chunk that reports the gap before it may be answered by a request for that gap.
constexpr uint32_t kFirstRefusedMax = 3;
// How long a stream waits after the disk did not return a chunk.
constexpr uint32_t kLoadRetryMs = 1'000;
// Bounds of the delay that a busy aggregator asks for; 0 means the default.
constexpr uint32_t kBusyDelayDefaultMs = 100;
constexpr uint32_t kBusyDelayLongestMs = 30'000;

}  // namespace

Uploader::Uploader(DeliveryQueue& queue, UploadConnector connector, TaskRunner& runner,
                   const Clock& clock, Random& random, uint32_t unacked_max)
    : queue_(queue),
      connector_(std::move(connector)),
      runner_(runner),
      clock_(clock),
      random_(random),
      backoff_(random, kReconnectFirstNs, kReconnectLongestNs),
      window_(unacked_max) {
  queue_.SetListener(this);
}

Uploader::~Uploader() { queue_.SetListener(nullptr); }

void Uploader::SetEnabled(bool enabled) {
  assert(runner_.RunsTasksOnCurrentThread());
  if (enabled_ == enabled) return;
  enabled_ = enabled;
  if (enabled) {
    if (!reconnecting_) Connect();
  } else {
    // No event of the call can follow, so its state is cleared here.
    stream_.reset();
    writing_ = false;
    window_.RewindAll();
  }
}

void Uploader::OnReady(StreamNumber stream) {
  window_.Add(stream);
  Pump();
}

void Uploader::OnLoaded(StreamNumber stream, bool try_later) {
  if (try_later) return PauseFor(stream, kLoadRetryMs);
  window_.Resume(stream);
  Pump();
}

void Uploader::OnFirstDropped(StreamNumber stream) { window_.PopFront(stream); }

void Uploader::OnUnsentDropped(StreamNumber stream) { window_.DropUnsent(stream); }

void Uploader::HandleCursors(const CaptureId& capture_id,
                             const std::vector<StreamCursor>& cursors) {
  for (const StreamCursor& cursor : cursors) {
    HandleStored(queue_.Find(capture_id, cursor.stream), cursor.next_sequence);
  }
}

void Uploader::ForgetCapture(const CaptureId& capture_id) {
  for (const StreamNumber stream : queue_.StreamsIn(capture_id)) {
    window_.Remove(stream);
    rewinding_.erase(stream);
    queue_.Drop(stream, "the capture has ended at the aggregator");
  }
  queue_.ForgetCapture(capture_id);
  Pump();
}

void Uploader::ForgetAllBut(const std::set<CaptureId>& captures) {
  for (const CaptureId& capture_id : queue_.captures()) {
    if (captures.contains(capture_id)) continue;
    spdlog::info("upload: capture {} has ended at the aggregator", capture_id.ToString());
    ForgetCapture(capture_id);
  }
}

void Uploader::Connect() {
  assert(runner_.RunsTasksOnCurrentThread());
  if (!enabled_ || stream_ != nullptr) return;
  ++counters_.calls;
  ++call_number_;
  // State of the earlier call ends here: no stream is paused or going back, and nothing is under
  // way.
  call_begun_ns_ = clock_.MonotonicNs();
  writing_ = false;
  rewinding_.clear();
  window_.RewindAll();
  stream_ = connector_(*this);
  WatchForSilence(counters_.answers);
  Pump();
}

void Uploader::WatchForSilence(uint64_t answers_before) {
  // Silence counts only if chunks were under way at both ends of the period.
  const bool waiting = window_.in_flight() > 0;
  After(kSilenceMaxNs, [this, answers_before, waiting, call = call_number_] {
    if (call != call_number_ || stream_ == nullptr) return;
    if (waiting && window_.in_flight() > 0 && counters_.answers == answers_before) {
      OnClosed(
          absl::DeadlineExceededError("the aggregator does not answer the chunks that were sent"));
    } else {
      WatchForSilence(counters_.answers);
    }
  });
}

void Uploader::OnClosed(const absl::Status& status) {
  assert(runner_.RunsTasksOnCurrentThread());
  spdlog::info("upload: the call ended: {}", status.ToString());
  // Everything without an acknowledgement will be sent again; the aggregator drops duplicates.
  stream_.reset();
  writing_ = false;
  window_.RewindAll();
  if (!enabled_ || reconnecting_) return;
  reconnecting_ = true;
  After(backoff_.NextDelayNs(), [this] {
    reconnecting_ = false;
    Connect();
  });
}

void Uploader::Pump() {
  assert(runner_.RunsTasksOnCurrentThread());
  while (stream_ != nullptr && !writing_) {
    // One write at a time: OnWritten, or the chunk that was loaded, continues the loop.
    const auto turn = window_.TakeTurn();
    if (!turn) return;
    DeliveryQueue::Entry& entry = queue_.at(turn->stream, turn->index);
    if (entry.envelope != nullptr) {
      Send(turn->stream, entry);
      // What follows is read while this one is on its way.
      queue_.Load(turn->stream, turn->index + 1);
      return;
    }
    // It has to be read back first; the other streams continue meanwhile.
    window_.Rewind(turn->stream, turn->index);
    window_.Pause(turn->stream);
    queue_.Load(turn->stream, turn->index);
  }
}

void Uploader::Send(StreamNumber stream, DeliveryQueue::Entry& entry) {
  assert(stream_ != nullptr && !writing_ && entry.envelope != nullptr);
  if (entry.sent_ns < call_begun_ns_) entry.sent_ns = clock_.MonotonicNs();
  window_.RecordBytes(stream, entry.envelope_bytes);
  writing_ = true;
  ++counters_.chunks_sent;
  counters_.bytes_sent += entry.envelope_bytes;
  if (!entry.gone) return stream_->Write(entry.envelope);
  // A copy: the entry's own envelope is shared with the spool and has no gap.
  auto envelope = std::make_shared<v1::ChunkEnvelope>(*entry.envelope);
  ToProto(*entry.gone, envelope->mutable_gone_before());
  stream_->Write(std::move(envelope));
}

void Uploader::OnWritten() {
  writing_ = false;
  Pump();
}

void Uploader::OnAck(const v1::UploadAck& ack) {
  assert(runner_.RunsTasksOnCurrentThread());
  const StreamNumber stream = ack.stream_ref();
  ++counters_.answers;
  // Every answer names where the stream continues, also a refusal, so what is stored is settled
  // first.
  HandleStored(stream, ack.next_sequence());
  if (ack.refusal() == v1::REFUSAL_CODE_NONE) {
    backoff_.Reset();
  } else if (queue_.ready(stream) > 0) {
    HandleRefusal(stream, ack);
  }
  Pump();
}

void Uploader::HandleStored(StreamNumber stream, uint64_t next_sequence) {
  while (queue_.ready(stream) > 0 && queue_.at(stream, 0).sequence < next_sequence) {
    const auto is_rewinding = rewinding_.find(stream);
    if (is_rewinding != rewinding_.end() && is_rewinding->second.asked_for < next_sequence) {
      rewinding_.erase(is_rewinding);
    }
    RecordAckTime(queue_.at(stream, 0));
    // A receipt may submit the next chunk: the window has to be right before it is given.
    window_.PopFront(stream);
    if (!queue_.PopStored(stream)) {
      window_.Remove(stream);
      rewinding_.erase(stream);
    }
  }
}

// Chunks that a welcome reports as stored were sent in an earlier call, or by an earlier agent.
void Uploader::RecordAckTime(const DeliveryQueue::Entry& entry) {
  if (stream_ == nullptr || entry.sent_ns == 0 || entry.sent_ns < call_begun_ns_) return;
  ack_times_.Record(clock_.MonotonicNs() - entry.sent_ns);
}

void Uploader::HandleRefusal(StreamNumber stream, const v1::UploadAck& ack) {
  switch (ack.refusal()) {
    case v1::REFUSAL_CODE_UNKNOWN_CAPTURE:
      ++counters_.chunks_refused;
      Abandon(stream, fmt::format("the aggregator does not know the capture: {}", ack.message()));
      return;
    case v1::REFUSAL_CODE_GAP:
      ++counters_.gaps;
      HandleGap(stream, ack);
      return;
    case v1::REFUSAL_CODE_BUSY:
      ++counters_.busy;
      // An aggregator that could not check names an earlier chunk than any here, so all of them go
      // again.
      GoBack(stream, ack.next_sequence());
      rewinding_.erase(stream);
      PauseFor(stream, ack.retry_delay_ms());
      return;
    default:  // MALFORMED, LIMIT, and whatever a later version refuses for
      ++counters_.chunks_refused;
      Replace(stream, ack);
      return;
  }
}

void Uploader::Replace(StreamNumber stream, const v1::UploadAck& ack) {
  // The refusal may be of a chunk that was settled or dropped meanwhile.
  const size_t index = queue_.IndexOf(stream, ack.refused_sequence());
  if (index >= window_.in_flight(stream) ||
      queue_.at(stream, index).sequence != ack.refused_sequence()) {
    return;  // Not ours to answer for any more.
  }
  DeliveryQueue::Entry& entry = queue_.at(stream, index);
  if (entry.envelope == nullptr) return;  // it was sent before a reconnection, and is sent again
  const auto header = ParseEnvelopeHeader(*entry.envelope);
  // What was under way twice is refused twice. Only repeated refusals show that the replacement
  // itself is refused.
  if (entry.replaced && ++entry.refusals < kReplacementsRefusedMax) {
    return GoBack(stream, ack.refused_sequence());
  }
  if (entry.replaced || !header.ok()) {
    Abandon(stream, fmt::format("the aggregator refused a chunk permanently: {}", ack.message()));
    return;
  }
  spdlog::warn("upload: chunk {} of {} is refused permanently, {} events are lost: {}",
               entry.sequence, ToString(header->stream), entry.events, ack.message());
  queue_.Replace(
      stream, entry,
      MakeLossChunk(*header, LossPlace::kWireRefusal, LossReason::kRefused, ack.message()));
  // What was sent after it is refused as a gap or known already: all of it goes again.
  GoBack(stream, ack.refused_sequence());
}

void Uploader::HandleGap(StreamNumber stream, const v1::UploadAck& ack) {
  assert(queue_.ready(stream) > 0);
  // The aggregator answers every chunk behind a gap with the same request, so only the first
  // counts.
  const auto known = rewinding_.find(stream);
  DeliveryQueue::Entry& first = queue_.at(stream, 0);
  if (known != rewinding_.end() && known->second.asked_for == ack.next_sequence()) {
    // The refusal of a chunk that was still under way. The first chunk, which reports the gap, is
    // sent again a few times.
    if (!first.gone || ack.refused_sequence() != first.sequence) return;
    if (++known->second.first_refused < kFirstRefusedMax) return window_.Rewind(stream, 0);
    Abandon(stream, fmt::format("the aggregator requests chunk {}, which no longer exists",
                                ack.next_sequence()));
    return;
  }
  if (ack.next_sequence() < first.sequence && !first.gone) {
    // Either it had stored more than it has now, or what it asks for was lost on this node.
    const bool was_stored = ack.next_sequence() < queue_.stored_before(stream);
    first.gone =
        PrecedingGap{was_stored ? LossPlace::kStore : LossPlace::kSpool, LossReason::kUnknown};
    spdlog::warn("upload: the aggregator requests chunk {} of a stream that starts with {} here",
                 ack.next_sequence(), first.sequence);
  }
  if (ack.next_sequence() < first.sequence) ++counters_.gone;
  GoBack(stream, ack.next_sequence());
}

void Uploader::GoBack(StreamNumber stream, uint64_t sequence) {
  rewinding_[stream] = {.asked_for = sequence};
  window_.Rewind(stream, queue_.IndexOf(stream, sequence));
}

void Uploader::PauseFor(StreamNumber stream, uint32_t delay_ms) {
  if (delay_ms == 0) delay_ms = kBusyDelayDefaultMs;
  window_.Pause(stream);
  uint64_t delay_ns = uint64_t{std::min(delay_ms, kBusyDelayLongestMs)} * 1'000'000;
  // Many agents were asked to wait at the same moment and should not return at the same one.
  delay_ns += random_.Next64() % (delay_ns / 4 + 1);
  After(delay_ns, [this, stream, call = call_number_] {
    if (call != call_number_) return;  // A new call begins with nothing paused.
    window_.Resume(stream);
    Pump();
  });
}

void Uploader::Abandon(StreamNumber stream, const std::string& reason) {
  spdlog::warn("upload: a stream is abandoned: {}", reason);
  ++counters_.streams_abandoned;
  window_.Remove(stream);
  rewinding_.erase(stream);
  queue_.Drop(stream, reason);
}

void Uploader::After(uint64_t delay_ns, std::function<void()> task) {
  runner_.PostDelayedTask(weak_tasks_.Wrap(std::move(task)), delay_ns);
}

}  // namespace neurontrace
