// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/upload_acks.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "lib/base/clean_text.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// How long an agent waits before it sends a chunk again that could not be written.
constexpr uint32_t kRetryDelayMs = 1'000;

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
    if (stream.rewind_sequence == stream.durable && stream.failed != sequence) return;
    stream.rewind_sequence = stream.durable;
    stream.failed = sequence;
    Refuse(stream_ref, sequence, v1::REFUSAL_CODE_BUSY, std::string(result.status().message()),
           kRetryDelayMs);
    return;
  }
  switch (result->outcome) {
    case PutOutcome::kStored:
    case PutOutcome::kDuplicate:
      stream.durable = result->next_sequence;
      stream.rewind_sequence.reset();
      if (!std::exchange(stream.moved, true)) moved_.push_back(stream_ref);
      return;
    case PutOutcome::kGap:
      stream.durable = result->next_sequence;
      // One refusal makes the agent go back; the chunks that were already under way need none.
      if (stream.rewind_sequence == stream.durable) return;
      stream.rewind_sequence = stream.durable;
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
  stream.rewind_sequence.reset();
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

}  // namespace neurontrace
