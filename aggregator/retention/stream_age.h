// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "aggregator/align/core/clock_map.h"
#include "aggregator/store/chunk_trim.h"
#include "aggregator/store/stream_record.h"

namespace neurontrace {

// The current time on the clocks that timestamps are compared with.
struct RetentionTime {
  uint64_t reference_ns = 0;  // what clock maps lead to
  uint64_t realtime_ns = 0;   // the aggregator's, for hosts without a map
  uint64_t monotonic_ns = 0;  // for the arrival of chunks
};

// How old the chunks of one stream are. Ages come from the timestamps of their events while these
// are plausible. Otherwise, and in a stream with a time of its own, they come from the arrival of
// chunks, which is noted from pass to pass. Of chunks from before the first pass of this process it
// is only known that they had arrived by then. One thread at a time.
class StreamAge {
 public:
  // Moments of arrival that are remembered of a stream; more are thinned out.
  static constexpr size_t kMarksMax = 64;
  static constexpr uint64_t kMarkSpacingNs = 1'000'000'000;
  // Timestamps this far in the future are implausible. So are those this far in the past, or half
  // of the retention, on arrival, if nothing is known of the host's clock.
  static constexpr uint64_t kAheadMaxNs = 10'000'000'000;
  static constexpr uint64_t kBehindMaxNs = 60'000'000'000;

  // `retention_ns` 0: limited by bytes only.
  explicit StreamAge(uint64_t retention_ns = 0) { SetRetention(retention_ns); }
  // Changes how much of the stream is kept. Earlier marks stay, so that no chunk counts as younger
  // than before.
  void SetRetention(uint64_t retention_ns);

  // Takes what is stored of the stream now. `map` leads from its host's REALTIME to the reference,
  // and is the identity if nothing is known; it must exist until the next call.
  void RecordStream(const StreamRecord& record, const ClockMap& map, const RetentionTime& now);

  // Returns which chunks are older than `age_ns`. Whatever the timestamps are, what arrived twice
  // as long ago expires, too: a host with a wrong clock must not fill the store.
  TrimRequest OlderThan(uint64_t age_ns) const;
  // Returns the age of the oldest event in ns; 0 without one.
  uint64_t OldestNs() const;
  bool is_by_receipt() const { return by_receipt_; }

 private:
  // Everything below `next_sequence` had arrived at `monotonic_ns`.
  struct Mark {
    uint64_t monotonic_ns = 0;
    uint64_t next_sequence = 0;
  };

  uint64_t ReceivedBefore(uint64_t age_ns) const;
  // Returns the raw timestamp that an event of this age has on the stream's clock.
  uint64_t StampAgo(uint64_t age_ns) const;

  uint64_t retention_ns_ = 0;
  // How old new events may be before their timestamps are implausible.
  uint64_t behind_max_ns_ = kBehindMaxNs;
  // At least this much time between two marks; doubled when there are too many.
  uint64_t mark_spacing_ns_ = kMarkSpacingNs;
  std::deque<Mark> marks_;  // oldest first
  // Of the last Note, like all that follows. Owned by CaptureRetention; null: Note was not called.
  const ClockMap* map_ = nullptr;
  RetentionTime now_;
  uint64_t first_sequence_ = 0;
  uint64_t next_sequence_ = 0;
  uint64_t first_timestamp_ns_ = 0;
  uint64_t events_ = 0;
  bool by_receipt_ = false;
};

}  // namespace neurontrace
