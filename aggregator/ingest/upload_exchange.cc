// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/upload_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "lib/base/clean_text.h"
#include "lib/base/mutex.h"
#include "lib/trace/limits.h"
#include "lib/wire/chunk_envelope.h"

namespace neurontrace {
namespace {

// How long an agent waits before it sends a chunk again that could not be written.
constexpr uint32_t kRetryDelayMs = 1'000;

// Messages of one call that are being validated, or wait for an earlier one.
constexpr size_t kArrivalsMax = 4;

}  // namespace

// Streams are never removed: a call that needs more of them is ended, and the next one starts with
// none.
bool UploadAcks::Know(uint32_t stream_ref) {
  if (streams_.contains(stream_ref)) return true;
  if (streams_.size() >= limits::kUploadStreamsMax) return false;
  streams_.try_emplace(stream_ref);
  return true;
}

// Protocol: a durable position is repeated in every answer. After a failure or a gap the agent goes
// back to it and sends everything from there, so chunks behind the gap are dropped without an
// answer of their own.
void UploadAcks::OnResult(uint32_t stream_ref, uint64_t sequence,
                          const absl::StatusOr<PutResult>& result) {
  Stream& stream = streams_[stream_ref];
  stream.expected = std::max(stream.expected, sequence + 1);
  if (!result.ok()) {
    // A chunk that is sent again and fails again is refused again: its agent waits for an answer.
    if (stream.going_back_to == stream.durable && stream.failed != sequence) return;
    stream.going_back_to = stream.durable;
    stream.failed = sequence;
    Refuse(stream_ref, sequence, v1::REFUSAL_CODE_BUSY, std::string(result.status().message()),
           kRetryDelayMs);
    return;
  }
  switch (result->outcome) {
    case PutOutcome::kStored:
    case PutOutcome::kDuplicate:
      stream.durable = result->next_sequence;
      stream.going_back_to.reset();
      if (!std::exchange(stream.moved, true)) moved_.push_back(stream_ref);
      return;
    case PutOutcome::kGap:
      stream.durable = result->next_sequence;
      // One refusal makes the agent go back; the chunks that were already under way need none.
      if (stream.going_back_to == stream.durable) return;
      stream.going_back_to = stream.durable;
      Refuse(stream_ref, sequence, v1::REFUSAL_CODE_GAP, "a chunk before this one is missing");
      return;
    case PutOutcome::kUnknownCapture:
      OnRefused(stream_ref, sequence, v1::REFUSAL_CODE_UNKNOWN_CAPTURE,
                "the capture is unknown or deleted");
      return;
    case PutOutcome::kStreamEnded:
      stream.durable = result->next_sequence;
      OnRefused(stream_ref, sequence, v1::REFUSAL_CODE_MALFORMED,
                "the stream's last chunk is already stored");
      return;
    case PutOutcome::kTooManyStreams:
      OnRefused(stream_ref, sequence, v1::REFUSAL_CODE_LIMIT,
                "the capture has reached the limit of streams");
      return;
  }
}

// Permanent: the agent does not send the chunk again. The next gap of the stream has to be
// reported, so going_back_to ends here.
void UploadAcks::OnRefused(uint32_t stream_ref, std::optional<uint64_t> sequence,
                           v1::RefusalCode code, const std::string& reason) {
  Stream& stream = streams_[stream_ref];
  stream.going_back_to.reset();
  Refuse(stream_ref, sequence.value_or(stream.expected), code, reason);
}

void UploadAcks::Refuse(uint32_t stream_ref, uint64_t sequence, v1::RefusalCode code,
                        const std::string& reason, uint32_t retry_delay_ms) {
  v1::UploadAck ack;
  ack.set_stream_ref(stream_ref);
  ack.set_next_sequence(streams_[stream_ref].durable);
  ack.set_refusal(code);
  ack.set_refused_sequence(sequence);
  ack.set_message(CleanText(reason, limits::kDetailBytesMax));
  ack.set_retry_delay_ms(retry_delay_ms);
  refusals_.push_back(std::move(ack));
}

v1::UploadAck UploadAcks::Take() {
  assert(pending() > 0);
  v1::UploadAck ack;
  if (!moved_.empty()) {
    Stream& stream = streams_[moved_.front()];
    stream.moved = false;
    ack.set_stream_ref(moved_.front());
    ack.set_next_sequence(stream.durable);
    moved_.pop_front();
  } else {
    ack = std::move(refusals_.front());
    refusals_.pop_front();
  }
  return ack;
}

UploadExchange::UploadExchange(const UploadDeps& deps, std::string agent_id, Transport transport)
    : BidiExchange(std::move(transport)), deps_(deps), agent_id_(std::move(agent_id)) {}

// A call without a valid id is finished by Plan, which finds nothing to read and nothing to answer.
void UploadExchange::Begin() {
  deps_.metrics.upload_calls.Increment();
  Change([this]() NT_REQUIRES(mutex_) {
    if (!agent_id_.empty() && agent_id_.size() <= limits::kIdentityStringBytesMax) return;
    status_ =
        grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                     fmt::format("Upload needs the agent's id in the metadata {}", kAgentIdKey));
    all_read_ = true;
  });
}

void UploadExchange::OnReadDone(bool ok) {
  Arrival* arrival = nullptr;
  Change([&]() NT_REQUIRES(mutex_) {
    reading_ = false;
    if (!ok || cancelled_) {
      all_read_ = true;
    } else if (!acks_.Know(incoming_.stream_ref())) {
      status_ = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                             "one call uses too many streams; open another call");
      all_read_ = true;
    } else {
      arrivals_.push_back(std::make_unique<Arrival>());
      arrival = arrivals_.back().get();
      arrival->envelope.Swap(&incoming_);
      arrival->bytes = arrival->envelope.header().size() + arrival->envelope.columns().size();
      // The message is in memory now, so it counts even if it will be refused.
      deps_.budget.Take(agent_id_, arrival->bytes);
    }
  });
  // Validation is the expensive part and runs without the lock, on this thread of gRPC. `arrival`
  // stays valid, because only HandOver removes it, after it has a verdict.
  if (arrival != nullptr) Judge(*arrival);
}

// A refusal needs the sequence number. It is read once more from the header, which may be intact
// even if the columns are not.
void UploadExchange::Judge(Arrival& arrival) {
  absl::StatusOr<ReceivedChunk> verdict = deps_.door.Admit(arrival.envelope, agent_id_);
  if (!verdict.ok()) {
    const auto header = ParseEnvelopeHeader(arrival.envelope);
    if (header.ok()) arrival.sequence = header->sequence;
  }
  {
    const MutexLock lock(mutex_);
    arrival.verdict = std::move(verdict);
  }
  HandOver();
}

// Passes everything that is ready to the writer, in order. If another thread is doing so already,
// it also takes what this one has added.
void UploadExchange::HandOver() {
  MutexLock lock(mutex_);
  if (handing_over_) return;
  handing_over_ = true;
  while (!arrivals_.empty() && arrivals_.front()->verdict) {
    const std::unique_ptr<Arrival> arrival = std::move(arrivals_.front());
    arrivals_.pop_front();
    const uint32_t stream_ref = arrival->envelope.stream_ref();
    if (!arrival->verdict->ok()) {
      deps_.metrics.refused_malformed.Increment();
      acks_.OnRefused(stream_ref, arrival->sequence, v1::REFUSAL_CODE_MALFORMED,
                      std::string(arrival->verdict->status().message()));
      // Neither the budget nor the writer is called with the lock, as both may call back.
      lock.Unlock();
      deps_.budget.Release(agent_id_, arrival->bytes);
      lock.Lock();
      continue;
    }
    // Counted before the chunk is submitted, because its answer may come before Submit returns.
    ++at_writer_;
    lock.Unlock();
    ReceivedChunk chunk = *std::move(*arrival->verdict);
    const uint64_t sequence = chunk.header.sequence;
    deps_.writer.Submit(std::move(chunk),
                        [self = shared_from_this(), stream_ref, sequence](const auto& result) {
                          self->OnResult(stream_ref, sequence, result);
                        });
    lock.Lock();
  }
  handing_over_ = false;
  // Planned while handing_over_ has just ended: places in arrivals_ are free again, so a read may
  // start.
  const Next next = NextStep();
  lock.Unlock();
  Act(next);
}

void UploadExchange::OnResult(uint32_t stream_ref, uint64_t sequence,
                              const absl::StatusOr<PutResult>& result) {
  CountRefusal(result);
  Change([&]() NT_REQUIRES(mutex_) {
    assert(at_writer_ > 0);
    --at_writer_;
    acks_.OnResult(stream_ref, sequence, result);
  });
}

void UploadExchange::CountRefusal(const absl::StatusOr<PutResult>& result) {
  IngestMetrics& metrics = deps_.metrics;
  if (!result.ok()) {
    metrics.refused_busy.Increment();
  } else if (result->outcome == PutOutcome::kDuplicate) {
    metrics.chunks_duplicate.Increment();
  } else if (result->outcome == PutOutcome::kGap) {
    metrics.refused_gap.Increment();
  } else if (result->outcome == PutOutcome::kUnknownCapture) {
    metrics.refused_unknown_capture.Increment();
  } else if (result->outcome == PutOutcome::kStreamEnded) {
    metrics.refused_malformed.Increment();
  } else if (result->outcome == PutOutcome::kTooManyStreams) {
    metrics.refused_limit.Increment();
  }
}

UploadExchange::Next UploadExchange::Plan() {
  Next next;
  if (!all_read_ && !cancelled_ && !reading_ && !asking_ && arrivals_.size() < kArrivalsMax &&
      acks_.pending() < limits::kUploadAnswersMax) {
    asking_ = true;
    next.read = true;
  }
  if (!cancelled_ && !writing_ && acks_.pending() > 0) {
    writing_ = true;
    outgoing_ = acks_.Take();
    next.write = true;
  }
  // Everything that was received gets an answer before the call finishes.
  const bool is_answered = arrivals_.empty() && at_writer_ == 0 && acks_.pending() == 0;
  if ((cancelled_ || (all_read_ && is_answered)) && !reading_ && !writing_) {
    finished_ = true;
    next.finish = true;
  }
  return next;
}

void UploadExchange::BeginRead() {
  deps_.budget.WhenRoom(agent_id_, [self = shared_from_this()] { self->OnRoom(); });
}

// The budget may call long after the call has ended; then there is nothing to read.
void UploadExchange::OnRoom() {
  bool read = false;
  {
    const MutexLock lock(mutex_);
    asking_ = false;
    if (!finished_ && !cancelled_) read = reading_ = true;
  }
  if (read) transport_.read(&incoming_);
}

void UploadExchange::OnDone() { deps_.metrics.upload_calls.Decrement(); }

}  // namespace neurontrace
