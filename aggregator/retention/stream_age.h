// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>

#include "aggregator/align/clock_map.h"
#include "aggregator/store/chunk_trim.h"
#include "aggregator/store/stream_record.h"

namespace neurontrace {

// Now, by the clocks that stamps are compared with.
struct RetentionTime {
  uint64_t reference_ns = 0;  // what clock maps lead to
  uint64_t realtime_ns = 0;   // of the aggregator: for stamps of hosts without a map
  uint64_t monotonic_ns = 0;  // for when chunks came
};

// How old the chunks of one stream are: by the stamps of their events as long as these make sense,
// else (and in a stream with a time of its own) by when they came, which is noted from pass to
// pass. Of what came before the first pass of this process it is known only that it came by then.
// One thread at a time.
class StreamAge {
 public:
  // Of these, more are thinned out: so many moments of receipt are remembered of a stream.
  static constexpr size_t kMarksMax = 64;
  static constexpr uint64_t kMarkSpacingNs = 1'000'000'000;
  // Stamps that lie so far in the future make no sense. Nor do those that lie so far in the past,
  // or half of what is kept, as they come, of a host whose clock nobody knows.
  static constexpr uint64_t kAheadMaxNs = 10'000'000'000;
  static constexpr uint64_t kBehindMaxNs = 60'000'000'000;

  explicit StreamAge(uint64_t retention_ns = 0);  // 0: by bytes alone

  // What is stored of the stream now. `map` leads from its host's REALTIME to the reference, and is
  // the identity where nothing is known of that.
  void Note(const StreamRecord& record, const ClockMap& map, const RetentionTime& now);

  // What is older than `age_ns`. Whatever the stamps say, what came twice as long ago goes, too.
  TrimRequest OlderThan(uint64_t age_ns) const;
  // How old the oldest event is; 0 without one.
  uint64_t OldestNs() const;
  bool is_by_receipt() const { return by_receipt_; }

 private:
  struct Mark {
    uint64_t monotonic_ns = 0;
    uint64_t next_sequence = 0;
  };

  uint64_t ReceivedBefore(uint64_t age_ns) const;
  uint64_t StampAgo(uint64_t age_ns) const;

  uint64_t behind_max_ns_;
  uint64_t mark_spacing_ns_;
  std::deque<Mark> marks_;  // oldest first
  const ClockMap* map_ = nullptr;
  RetentionTime now_;
  uint64_t first_sequence_ = 0;
  uint64_t next_sequence_ = 0;
  uint64_t first_timestamp_ns_ = 0;
  uint64_t events_ = 0;
  bool by_receipt_ = false;
};

}  // namespace neurontrace
