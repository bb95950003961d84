// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/stream_record.h"

#include <algorithm>

#include "aggregator/store/identity_codec.h"
#include "aggregator/store/stored_bytes.h"
#include "base/status.h"
#include "base/time_units.h"
#include "trace/expiry.h"
#include "trace/fidelity.h"
#include "trace/given_way.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

// 2 added the account, captured and told, and the last canary. 3 added gaps, 4 the mark, 5 what has
// expired, 6 the remarks, 7 the clock domain.
constexpr uint64_t kStreamVersion = 7;

uint64_t LengthNs(const Loss& loss) {
  return loss.first_timestamp_ns == 0 || loss.last_timestamp_ns < loss.first_timestamp_ns
             ? 0
             : loss.last_timestamp_ns - loss.first_timestamp_ns;
}

// What expires here no producer can know, and calling it so would hide a loss.
Loss WithoutExpiry(Loss loss) {
  if (IsExpiry(loss)) loss.reason = LossReason::kUnknown;
  return loss;
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

void StreamRecord::NoteGap(const Loss& loss) {
  if (loss.first_timestamp_ns == 0) return;
  Loss gap = WithoutTimes(loss);
  gap.first_timestamp_ns = loss.first_timestamp_ns;
  gap.last_timestamp_ns = std::max(loss.first_timestamp_ns, loss.last_timestamp_ns);
  if (IsGivenWay(loss)) {
    // No loss. Said again while it goes on; kept with its words, as the captures differ.
    gap.detail = loss.detail;
    const auto same = std::find_if(gaps.begin(), gaps.end(),
                                   [&](const Loss& known) { return IsSameGivenWay(known, gap); });
    if (same != gaps.end()) {
      gap.first_timestamp_ns = std::min(gap.first_timestamp_ns, same->first_timestamp_ns);
      gap.last_timestamp_ns = std::max(gap.last_timestamp_ns, same->last_timestamp_ns);
      gaps.erase(same);
    }
  } else if (LengthNs(loss) > 0) {
    ++gaps_count;
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
  gaps.erase(std::min_element(gaps.begin(), gaps.end(), [](const Loss& a, const Loss& b) {
    return LengthNs(a) < LengthNs(b);
  }));
}

void StreamRecord::Book(const Loss& loss) {
  Loss booked = WithoutExpiry(loss);
  // Who reads losses takes their times for those of a host.
  if (clock_domain == ClockDomain::kOwn) {
    booked.first_timestamp_ns = booked.last_timestamp_ns = 0;
  }
  AddLoss(booked, losses);
  if (!IsLeftOut(booked)) NoteGap(booked);
}

void StreamRecord::BookMissing(const ChunkHeader& header, const std::optional<GoneBefore>& gone) {
  if (header.events_before > captured) {
    Book({.place = gone ? gone->place : LossPlace::kStore,
          .reason = gone ? gone->reason : LossReason::kUnknown,
          .events = header.events_before - captured,
          .first_timestamp_ns = last_timestamp_ns,
          .last_timestamp_ns = header.first_timestamp_ns});
    captured = header.events_before;
  }
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
  uint64_t on_the_way = 0;
  bool unknown = false;
  for (const Loss& loss : losses) {
    if (loss.place < LossPlace::kAgentQueue) continue;
    on_the_way = AddSaturating(on_the_way, loss.events);
    unknown = unknown || loss.events_unknown;
  }
  return unknown || captured == AddSaturating(events, on_the_way);
}

void StreamRecord::Add(const ChunkHeader& header, uint64_t chunk_bytes,
                       const std::optional<GoneBefore>& gone) {
  if (header.clock_domain == ClockDomain::kOwn) clock_domain = ClockDomain::kOwn;
  BookMissing(header, gone);
  next_sequence = header.sequence + 1;
  source_position = header.source_position;
  source_skip = header.source_skip;
  sequence_mark = header.sequence_mark;
  ended = header.end_of_stream;
  if (header.is_canary()) {
    canary_realtime_ns = header.canary_realtime_ns;
    canary_sequence = header.sequence;
    return;
  }
  ++chunks;
  events = AddSaturating(events, header.event_count);
  bytes = AddSaturating(bytes, chunk_bytes);
  if (header.event_count > 0) {
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
  ReplaceRemarks(header.remarks, remarks);
  if (remarks.size() > limits::kRemarksPerStreamMax) remarks.resize(limits::kRemarksPerStreamMax);
  // The newest resolution counts, also where it withdraws a claim. A chunk that only reports what
  // was lost on the way does not know the claims.
  const bool knows_claims = header.event_count > 0 || !header.rank_evidence.empty() ||
                            (header.end_of_stream && !header.replaced);
  if (knows_claims) evidence = header.rank_evidence;
}

std::string EncodeStreamRecord(const StreamRecord& record) {
  StoredBytesWriter out(kStreamVersion);
  WriteStreamIdentity(record.identity, out);
  out.Uint(record.next_sequence);
  out.Uint(record.source_position);
  out.Uint(record.source_skip);
  out.Bool(record.ended);
  out.Uint(record.chunks);
  out.Uint(record.events);
  out.Uint(record.bytes);
  out.Uint(record.first_timestamp_ns);
  out.Uint(record.last_timestamp_ns);
  out.Uint(record.chunk_span_max_ns);
  WriteLosses(record.losses, out);
  WriteEvidence(record.evidence, out);
  out.Uint(record.captured);
  WriteLosses(record.told, out);
  out.Uint(record.canary_realtime_ns);
  out.Uint(record.canary_sequence);
  WriteLosses(record.gaps, out);
  out.Uint(record.gaps_count);
  out.Uint(record.gaps_sum_ns);
  out.Uint(record.gaps_end_ns);
  out.Uint(record.sequence_mark);
  out.Uint(record.first_sequence);
  out.Uint(record.expired_chunks);
  out.Uint(record.expired_bytes);
  WriteRemarks(record.remarks, out);
  out.Uint(static_cast<uint64_t>(record.clock_domain));
  return out.Take();
}

absl::StatusOr<StreamRecord> DecodeStreamRecord(uint32_t number, std::string_view value) {
  StoredBytesReader in(value);
  const uint64_t version = in.Uint();
  if (version < 1 || version > kStreamVersion) {
    return DataLoss("stream record {}: version {} where 1 to {} are known", number, version,
                    kStreamVersion);
  }
  StreamRecord record;
  record.number = number;
  record.identity = ReadStreamIdentity(in);
  record.next_sequence = in.Uint();
  record.source_position = in.Uint();
  record.source_skip = in.Uint32();
  record.ended = in.Bool();
  record.chunks = in.Uint();
  record.events = in.Uint();
  record.bytes = in.Uint();
  record.first_timestamp_ns = in.Uint();
  record.last_timestamp_ns = in.Uint();
  record.chunk_span_max_ns = in.Uint();
  record.losses = ReadLosses(in);
  record.evidence = ReadEvidence(in);
  if (version >= 2) {
    record.captured = in.Uint();
    record.told = ReadLosses(in);
    record.canary_realtime_ns = in.Uint();
    record.canary_sequence = in.Uint();
  } else {
    record.captured = record.events;
    record.told = record.losses;
  }
  if (version >= 3) {
    record.gaps = ReadLosses(in);
    record.gaps_count = in.Uint();
    record.gaps_sum_ns = in.Uint();
    record.gaps_end_ns = in.Uint();
  }
  if (version >= 4) record.sequence_mark = in.Uint();
  if (version >= 5) {
    record.first_sequence = in.Uint();
    record.expired_chunks = in.Uint();
    record.expired_bytes = in.Uint();
  }
  if (version >= 6) record.remarks = ReadRemarks(in);
  if (version >= 7) {
    const uint64_t domain = in.Uint();
    if (domain != static_cast<uint64_t>(ClockDomain::kHostRealtime) &&
        domain != static_cast<uint64_t>(ClockDomain::kOwn)) {
      return DataLoss("stream record {}: clock domain {} is not known", number, domain);
    }
    record.clock_domain = static_cast<ClockDomain>(domain);
  }
  if (!in.Finished())
    return DataLoss("stream record {}: its {} bytes do not fit", number, value.size());
  return record;
}

}  // namespace neurontrace
