// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/stream_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "aggregator/store/stored_message.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/trace/expiry.h"
#include "lib/trace/fidelity.h"
#include "lib/trace/limits.h"
#include "lib/wire/conversions.h"
#include "lib/wire/suspension_codec.h"

namespace neurontrace {
namespace {

// Returns the length of a loss; 0 if its times are unknown or reversed.
uint64_t LengthNs(const Loss& loss) {
  return loss.first_timestamp_ns == 0 || loss.last_timestamp_ns < loss.first_timestamp_ns
             ? 0
             : loss.last_timestamp_ns - loss.first_timestamp_ns;
}

// Only the store deletes expired chunks. A producer that reports a loss as expiry is wrong, and
// would hide the loss, as expiry does not make a capture incomplete.
Loss WithoutExpiry(Loss loss) {
  if (IsExpiry(loss)) loss.reason = LossReason::kUnknown;
  return loss;
}

// Appends the values as messages.
template <typename Value, typename Messages>
void AddStored(const std::vector<Value>& values, Messages* messages) {
  messages->Reserve(static_cast<int>(values.size()));
  for (const Value& value : values) ToProto(value, messages->Add());
}

// Fails with INVALID_ARGUMENT for a field that encoding does not write.
absl::StatusOr<StreamRecord> Restored(uint32_t number, v1::StoredStream& message) {
  if (message.clock_domain() != v1::CLOCK_DOMAIN_HOST_REALTIME &&
      message.clock_domain() != v1::CLOCK_DOMAIN_OWN) {
    return InvalidArgument("unknown clock domain {}", static_cast<int>(message.clock_domain()));
  }
  StreamRecord record;
  record.number = number;
  ASSIGN_OR_RETURN(record.identity, FromProto(message.identity()));
  record.next_sequence = message.next_sequence();
  record.source_position = message.source_position();
  record.source_skip = message.source_skip();
  record.sequence_mark = message.sequence_mark();
  record.ended = message.ended();
  record.chunks = message.chunks();
  record.events = message.events();
  record.captured = message.captured();
  record.bytes = message.bytes();
  record.clock_domain = static_cast<ClockDomain>(message.clock_domain());
  record.first_timestamp_ns = message.first_timestamp_ns();
  record.last_timestamp_ns = message.last_timestamp_ns();
  record.chunk_span_max_ns = message.chunk_span_max_ns();
  RETURN_IF_ERROR(FromStoredList(message.mutable_losses(), record.losses));
  RETURN_IF_ERROR(FromStoredList(message.mutable_told(), record.told));
  RETURN_IF_ERROR(FromStoredList(message.mutable_evidence(), record.evidence));
  record.canary_realtime_ns = message.canary_realtime_ns();
  record.canary_sequence = message.canary_sequence();
  RETURN_IF_ERROR(FromStoredList(message.mutable_gaps(), record.gaps));
  record.gaps_count = message.gaps_count();
  record.gaps_sum_ns = message.gaps_sum_ns();
  record.gaps_end_ns = message.gaps_end_ns();
  record.first_sequence = message.first_sequence();
  record.expired_chunks = message.expired_chunks();
  record.expired_bytes = message.expired_bytes();
  RETURN_IF_ERROR(FromStoredList(message.mutable_remarks(), record.remarks));
  RETURN_IF_ERROR(FromStoredList(message.mutable_suspensions(), record.suspensions));
  record.suspensions_count = message.suspensions_count();
  return record;
}

}  // namespace

uint64_t StreamRecord::events_lost() const {
  uint64_t sum = 0;
  for (const Loss& loss : losses) {
    if (!IsExpiry(loss)) sum = AddSaturating(sum, loss.events);
  }
  return sum;
}

bool StreamRecord::has_unknown_losses() const {
  return std::any_of(losses.begin(), losses.end(),
                     [](const Loss& loss) { return !IsExpiry(loss) && loss.events_unknown; });
}

uint64_t StreamRecord::events_expired() const {
  uint64_t sum = 0;
  for (const Loss& loss : losses) {
    if (IsExpiry(loss)) sum = AddSaturating(sum, loss.events);
  }
  return sum;
}

// The sums let a restarted producer continue its accounts, so that nothing is counted twice.
StreamCursor StreamRecord::Cursor() const {
  return {.stream = identity,
          .next_sequence = next_sequence,
          .source_position = source_position,
          .source_skip = source_skip,
          .ended = ended,
          .events_before = captured,
          .losses_before = told,
          .sequence_mark = sequence_mark};
}

void StreamRecord::RecordGap(const Loss& loss) {
  if (loss.first_timestamp_ns == 0) return;
  Loss gap = WithoutTimes(loss);
  gap.first_timestamp_ns = loss.first_timestamp_ns;
  gap.last_timestamp_ns = std::max(loss.first_timestamp_ns, loss.last_timestamp_ns);
  if (LengthNs(loss) > 0) {
    ++gaps_count;
    // Overlapping gaps count once.
    const uint64_t from = std::max(loss.first_timestamp_ns, gaps_end_ns);
    if (loss.last_timestamp_ns > from)
      gaps_sum_ns = AddSaturating(gaps_sum_ns, loss.last_timestamp_ns - from);
    gaps_end_ns = std::max(gaps_end_ns, loss.last_timestamp_ns);
  }
  const auto behind = std::upper_bound(
      gaps.begin(), gaps.end(), gap,
      [](const Loss& a, const Loss& b) { return a.first_timestamp_ns < b.first_timestamp_ns; });
  gaps.insert(behind, std::move(gap));
  if (gaps.size() <= limits::kGapsPerStreamMax) return;
  // The longest are the ones that people look for.
  gaps.erase(std::min_element(gaps.begin(), gaps.end(), [](const Loss& a, const Loss& b) {
    return LengthNs(a) < LengthNs(b);
  }));
}

void StreamRecord::Book(const Loss& loss) {
  Loss booked = WithoutExpiry(loss);
  // Readers take the times of losses for those of a host.
  if (clock_domain == ClockDomain::kOwn) {
    booked.first_timestamp_ns = booked.last_timestamp_ns = 0;
  }
  AddLoss(booked, losses);
  if (!IsLeftOut(booked)) RecordGap(booked);
}

void StreamRecord::RecordMissing(const ChunkHeader& header,
                                 const std::optional<PrecedingGap>& gone) {
  // Events in chunks that never arrived: every chunk carries the account of what precedes it
  // (docs/decisions/0008).
  if (header.events_before > captured) {
    Book({.place = gone ? gone->place : LossPlace::kStore,
          .reason = gone ? gone->reason : LossReason::kUnknown,
          .events = header.events_before - captured,
          .first_timestamp_ns = last_timestamp_ns,
          .last_timestamp_ns = header.first_timestamp_ns});
    captured = header.events_before;
  }
  // Losses that were reported in such chunks, by the same comparison of sums.
  for (Loss total : header.losses_before) {
    for (const Loss& known : told) {
      if (known.place != total.place || known.reason != total.reason) continue;
      total.events -= std::min(total.events, known.events);
      total.events_unknown = total.events_unknown && !known.events_unknown;
    }
    if (total.events == 0 && !total.events_unknown) continue;
    AddLoss(WithoutExpiry(total), losses);
    AddLoss(WithoutTimes(total), told);
  }
}

bool StreamRecord::Conserved() const {
  uint64_t in_transit = 0;
  bool unknown = false;
  for (const Loss& loss : losses) {
    // Earlier places lose events before the producer counts them as captured.
    if (loss.place < LossPlace::kAgentQueue) continue;
    in_transit = AddSaturating(in_transit, loss.events);
    unknown = unknown || loss.events_unknown;
  }
  return unknown || captured == AddSaturating(events, in_transit);
}

void StreamRecord::Add(const ChunkHeader& header, uint64_t chunk_bytes,
                       const std::optional<PrecedingGap>& gone) {
  if (header.clock_domain == ClockDomain::kOwn) clock_domain = ClockDomain::kOwn;
  RecordMissing(header, gone);
  next_sequence = header.sequence + 1;
  source_position = header.source_position;
  source_skip = header.source_skip;
  sequence_mark = header.sequence_mark;
  ended = header.end_of_stream;
  // A canary moves the cursor and is in none of the sums.
  if (header.is_canary()) {
    canary_realtime_ns = header.canary_realtime_ns;
    canary_sequence = header.sequence;
    return;
  }
  ++chunks;
  events = AddSaturating(events, header.event_count);
  bytes = AddSaturating(bytes, chunk_bytes);
  if (header.event_count > 0) {
    // The first condition is true for the first chunk with events, whose time replaces the 0.
    if (events == header.event_count || header.first_timestamp_ns < first_timestamp_ns) {
      first_timestamp_ns = header.first_timestamp_ns;
    }
    last_timestamp_ns = std::max(last_timestamp_ns, header.last_timestamp_ns);
    chunk_span_max_ns =
        std::max(chunk_span_max_ns, header.last_timestamp_ns - header.first_timestamp_ns);
  }
  captured = AddSaturating(captured, header.events_accounted());
  for (const Loss& loss : header.losses) {
    Book(loss);
    AddLoss(WithoutTimes(loss), told);
  }
  if (header.replaced && header.replaced->events > 0) Book(*header.replaced);
  for (const Suspension& suspension : header.suspensions) {
    const SuspensionAdded added =
        AddSuspension(suspension, limits::kSuspensionsPerStreamMax, suspensions);
    if (added == SuspensionAdded::kNew) suspensions_count = AddSaturating(suspensions_count, 1);
  }
  ReplaceRemarks(header.remarks, remarks);
  if (remarks.size() > limits::kRemarksPerStreamMax) remarks.resize(limits::kRemarksPerStreamMax);
  // The newest resolution applies, even if it withdraws a claim. A chunk that only reports losses
  // on the way does not know the claims.
  const bool knows_claims = header.event_count > 0 || !header.rank_evidence.empty() ||
                            (header.end_of_stream && !header.replaced);
  if (knows_claims) evidence = header.rank_evidence;
}

std::string EncodeStreamRecord(const StreamRecord& record) {
  v1::StoredStream message;
  ToProto(record.identity, message.mutable_identity());
  message.set_next_sequence(record.next_sequence);
  message.set_source_position(record.source_position);
  message.set_source_skip(record.source_skip);
  message.set_sequence_mark(record.sequence_mark);
  message.set_ended(record.ended);
  message.set_chunks(record.chunks);
  message.set_events(record.events);
  message.set_captured(record.captured);
  message.set_bytes(record.bytes);
  message.set_clock_domain(static_cast<v1::ClockDomain>(record.clock_domain));
  message.set_first_timestamp_ns(record.first_timestamp_ns);
  message.set_last_timestamp_ns(record.last_timestamp_ns);
  message.set_chunk_span_max_ns(record.chunk_span_max_ns);
  AddStored(record.losses, message.mutable_losses());
  AddStored(record.told, message.mutable_told());
  AddStored(record.evidence, message.mutable_evidence());
  message.set_canary_realtime_ns(record.canary_realtime_ns);
  message.set_canary_sequence(record.canary_sequence);
  AddStored(record.gaps, message.mutable_gaps());
  message.set_gaps_count(record.gaps_count);
  message.set_gaps_sum_ns(record.gaps_sum_ns);
  message.set_gaps_end_ns(record.gaps_end_ns);
  message.set_first_sequence(record.first_sequence);
  message.set_expired_chunks(record.expired_chunks);
  message.set_expired_bytes(record.expired_bytes);
  AddStored(record.remarks, message.mutable_remarks());
  AddStored(record.suspensions, message.mutable_suspensions());
  message.set_suspensions_count(record.suspensions_count);
  return EncodeStored(std::move(message));
}

absl::StatusOr<StreamRecord> DecodeStreamRecord(uint32_t number, std::string_view value) {
  return DecodeStored<v1::StoredStream>(
      fmt::format("stream record {}", number), value,
      [&](v1::StoredStream& message) { return Restored(number, message); });
}

}  // namespace neurontrace
