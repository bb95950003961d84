// SPDX-License-Identifier: Apache-2.0
#include "aggregator/retention/stream_age.h"

#include <algorithm>

#include "lib/base/time_units.h"
#include "lib/trace/chunk_header.h"

namespace neurontrace {

// With the initial spacing the marks cover four times the retention; OlderThan looks back twice the
// retention.
void StreamAge::SetRetention(uint64_t retention_ns) {
  if (retention_ns == retention_ns_) return;
  retention_ns_ = retention_ns;
  behind_max_ns_ = retention_ns == 0 ? kBehindMaxNs : std::min(kBehindMaxNs, retention_ns / 2);
  mark_spacing_ns_ = std::max(kMarkSpacingNs, retention_ns / (kMarksMax / 4));
}

void StreamAge::RecordStream(const StreamRecord& record, const ClockMap& map,
                             const RetentionTime& now) {
  const bool has_more = record.next_sequence > next_sequence_;
  map_ = &map;
  now_ = now;
  first_sequence_ = record.first_sequence;
  next_sequence_ = record.next_sequence;
  first_timestamp_ns_ = record.first_timestamp_ns;
  events_ = record.events;
  // Marks of chunks that have expired are useless.
  while (marks_.size() > 1 && marks_[1].next_sequence <= first_sequence_) marks_.pop_front();
  if (has_more &&
      (marks_.empty() || now.monotonic_ns >= marks_.back().monotonic_ns + mark_spacing_ns_)) {
    marks_.push_back({now.monotonic_ns, record.next_sequence});
  }
  if (marks_.size() > kMarksMax) {
    // Keeps every second mark, and spaces later ones accordingly. Chunks then count as younger than
    // they are, which is the safe direction.
    mark_spacing_ns_ *= 2;
    for (size_t i = 1; i < marks_.size() - 1; ++i) marks_.erase(marks_.begin() + i);
  }
  if (record.events == 0) return;
  // Such timestamps cannot be compared with any clock here.
  if (record.clock_domain == ClockDomain::kOwn) {
    by_receipt_ = true;
  } else if (map.is_identity()) {
    by_receipt_ =
        record.last_timestamp_ns > now.realtime_ns + kAheadMaxNs ||
        // Only new chunks show whether timestamps are plausibly recent; old ones are old.
        (has_more ? record.last_timestamp_ns < SubtractSaturating(now.realtime_ns, behind_max_ns_)
                  : by_receipt_);
  } else {
    by_receipt_ = map.ToReference(record.last_timestamp_ns) > now.reference_ns + kAheadMaxNs;
  }
}

// Returns the sequence below which everything had arrived `age_ns` ago.
uint64_t StreamAge::ReceivedBefore(uint64_t age_ns) const {
  uint64_t sequence = 0;
  for (const Mark& mark : marks_) {
    if (now_.monotonic_ns - mark.monotonic_ns < age_ns) break;
    sequence = mark.next_sequence;
  }
  return sequence;
}

uint64_t StreamAge::StampAgo(uint64_t age_ns) const {
  if (map_->is_identity()) return SubtractSaturating(now_.realtime_ns, age_ns);
  return map_->ToRaw(SubtractSaturating(now_.reference_ns, age_ns));
}

// Both limits of a request apply, whichever covers more: timestamps, and arrival as a safeguard.
TrimRequest StreamAge::OlderThan(uint64_t age_ns) const {
  TrimRequest request;
  if (map_ == nullptr) return request;
  if (by_receipt_) {
    request.before_sequence = ReceivedBefore(age_ns);
    return request;
  }
  request.before_raw_ns = StampAgo(age_ns);
  const uint64_t twice_ns = age_ns > UINT64_MAX / 2 ? UINT64_MAX : 2 * age_ns;
  request.before_sequence = ReceivedBefore(std::max(twice_ns, kBehindMaxNs));
  return request;
}

uint64_t StreamAge::OldestNs() const {
  if (events_ == 0 || map_ == nullptr) return 0;
  if (!by_receipt_) {
    return map_->is_identity()
               ? SubtractSaturating(now_.realtime_ns, first_timestamp_ns_)
               : SubtractSaturating(now_.reference_ns, map_->ToReference(first_timestamp_ns_));
  }
  // The first mark above the oldest stored chunk is the earliest time at which that chunk is known
  // to have arrived.
  for (const Mark& mark : marks_) {
    if (mark.next_sequence > first_sequence_) return now_.monotonic_ns - mark.monotonic_ns;
  }
  return 0;
}

}  // namespace neurontrace
