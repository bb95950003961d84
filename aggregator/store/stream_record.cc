// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/stream_record.h"

#include <algorithm>

#include "aggregator/store/identity_codec.h"
#include "aggregator/store/stored_bytes.h"
#include "base/status.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

constexpr uint64_t kVersion = 1;

// Saturates: a hostile producer must not make a sum wrap to something small.
void AddTo(uint64_t& sum, uint64_t more) {
  sum = sum > UINT64_MAX - more ? UINT64_MAX : sum + more;
}

void WidenSpan(uint64_t first, uint64_t last, uint64_t& span_first, uint64_t& span_last) {
  if (first != 0 && (span_first == 0 || first < span_first)) span_first = first;
  span_last = std::max(span_last, last);
}

void AddLoss(const Loss& loss, std::vector<Loss>& losses) {
  const auto same = std::find_if(losses.begin(), losses.end(), [&](const Loss& other) {
    return other.place == loss.place && other.reason == loss.reason;
  });
  if (same == losses.end()) {
    losses.push_back(loss);
    return;
  }
  AddTo(same->events, loss.events);
  same->events_unknown = same->events_unknown || loss.events_unknown;
  WidenSpan(loss.first_timestamp_ns, loss.last_timestamp_ns, same->first_timestamp_ns,
            same->last_timestamp_ns);
  if (!loss.detail.empty()) same->detail = loss.detail;
}

}  // namespace

uint64_t StreamRecord::events_lost() const {
  uint64_t sum = 0;
  for (const Loss& loss : losses) AddTo(sum, loss.events);
  return sum;
}

StreamCursor StreamRecord::Cursor() const {
  return {.stream = identity,
          .next_sequence = next_sequence,
          .source_position = source_position,
          .source_skip = source_skip,
          .ended = ended};
}

void StreamRecord::Add(const ChunkHeader& header, uint64_t chunk_bytes) {
  next_sequence = header.sequence + 1;
  source_position = header.source_position;
  source_skip = header.source_skip;
  ended = header.end_of_stream;
  ++chunks;
  AddTo(events, header.event_count);
  AddTo(bytes, chunk_bytes);
  if (header.event_count > 0) {
    if (events == header.event_count || header.first_timestamp_ns < first_timestamp_ns) {
      first_timestamp_ns = header.first_timestamp_ns;
    }
    last_timestamp_ns = std::max(last_timestamp_ns, header.last_timestamp_ns);
    chunk_span_max_ns =
        std::max(chunk_span_max_ns, header.last_timestamp_ns - header.first_timestamp_ns);
  }
  for (const Loss& loss : header.losses) AddLoss(loss, losses);
  MergeEvidence(header.rank_evidence, evidence);
}

void MergeEvidence(const std::vector<RankEvidence>& more, std::vector<RankEvidence>& evidence) {
  for (const RankEvidence& claim : more) {
    if (std::find(evidence.begin(), evidence.end(), claim) != evidence.end()) continue;
    const auto behind =
        std::upper_bound(evidence.begin(), evidence.end(), claim,
                         [](const auto& a, const auto& b) { return a.source < b.source; });
    evidence.insert(behind, claim);
  }
  if (evidence.size() > limits::kRankEvidencePerStreamMax) {
    evidence.resize(limits::kRankEvidencePerStreamMax);
  }
}

std::string EncodeStreamRecord(const StreamRecord& record) {
  StoredBytesWriter out(kVersion);
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
  return out.Take();
}

absl::StatusOr<StreamRecord> DecodeStreamRecord(uint32_t number, std::string_view value) {
  StoredBytesReader in(value);
  const uint64_t version = in.Uint();
  if (version != kVersion) {
    return DataLoss("stream record {}: version {} where {} is known", number, version, kVersion);
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
  if (!in.Finished())
    return DataLoss("stream record {}: its {} bytes do not fit", number, value.size());
  return record;
}

}  // namespace neurontrace
