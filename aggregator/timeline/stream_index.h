// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/timeline/chunk_source.h"
#include "aggregator/timeline/timeline_filter.h"

namespace neurontrace {

// Reads one stream's index once, forwards, and answers from it which chunk comes next and where the
// spans end that leave their chunk. Holds only entries that are still to come and as many as the
// two questions made it read ahead. One thread at a time.
class StreamIndex {
 public:
  // How far ahead the end of a span is looked for. Beyond, or with this many stops waiting for
  // their start, the search is given up and the span shown as open.
  static constexpr size_t kPairingHorizonChunks = 512;
  static constexpr size_t kForeignStopsMax = 16'384;
  // Spans whose stop is in a later chunk. Beyond, those that were given up on are forgotten, then
  // new ones are not carried: their stop is shown as one that lost its start.
  static constexpr size_t kCarriedSpansMax = 16'384;

  struct Chunk {
    uint64_t first_timestamp_ns = 0;
    uint64_t sequence = 0;
    uint32_t event_count = 0;
    bool is_selected = true;  // else the filter selects no event of it
  };
  struct SpanKey {
    uint64_t type_hash = 0;
    uint64_t tracking_id = 0;
    friend bool operator==(const SpanKey&, const SpanKey&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const SpanKey& key) {
      return H::combine(std::move(h), key.type_hash, key.tracking_id);
    }
  };

  struct RawWindow {
    uint64_t from_ns = 0;
    uint64_t until_ns = UINT64_MAX;
  };
  // Chunks whose last raw timestamp is before the window's begin, or whose first is at or after its
  // end, are passed over. Those that `filter` selects nothing of come in their turn, marked.
  StreamIndex(ChunkSource& source, const StreamDescription& stream, const TimelineFilter& filter,
              const RawWindow& window);

  // Reads on until next() is certain. Call first, and again after Pop.
  absl::Status Settle();
  // The chunk with the earliest first timestamp among those not popped; nullptr at the end.
  const Chunk* next() const { return upcoming_.empty() ? nullptr : &upcoming_.front(); }
  void Pop();

  struct StopSearch {
    std::optional<uint64_t> stop_raw_ns;
    bool given_up = false;  // the horizon was reached: there may be one
  };
  // Looks for the stop of a span that has none in its own chunk, and takes it out.
  absl::StatusOr<StopSearch> TakeStop(const SpanKey& key, uint64_t start_raw_ns);

  // Remembers that a span was yielded whose stop is or may be still to come, and finds it again
  // when the stop comes. `end_ns`: the reference time of its end, where that is not the stop's.
  void Carry(const SpanKey& key, uint64_t span_id, const StopSearch& search,
             std::optional<uint64_t> end_ns);
  // That time, of the span that this stop ends.
  std::optional<uint64_t> CarriedEnd(const SpanKey& key, uint64_t stop_raw_ns) const;
  std::optional<uint64_t> TakeCarried(const SpanKey& key);

 private:
  absl::Status FillBuffer();
  // Takes the next entry of the index; false at its end.
  absl::StatusOr<bool> ReadEntry();
  void KeepForeignStops(const ChunkEntry& entry);

  ChunkSource& source_;
  const TimelineFilter& filter_;
  const uint32_t stream_;
  const uint64_t chunk_span_max_ns_;
  const uint64_t until_raw_ns_;

  IndexPosition position_;  // of the next entry to fetch
  bool fetched_all_ = false;
  std::vector<ChunkEntry> buffer_;
  size_t buffer_at_ = 0;
  std::vector<Chunk> upcoming_;  // min-heap by first timestamp, then sequence
  uint64_t popped_raw_ns_ = 0;   // first timestamp of the latest popped chunk

  absl::flat_hash_map<SpanKey, uint64_t> foreign_stops_;  // raw time
  size_t purge_at_ = 1024;
  uint64_t stops_purged_at_ns_ = 0;  // popped_raw_ns_ at the last purge
  struct CarriedSpan {
    uint64_t span_id = 0;
    uint64_t stop_raw_ns = 0;  // 0: not known
    std::optional<uint64_t> end_ns;
  };
  absl::flat_hash_map<SpanKey, CarriedSpan> carried_;
  uint64_t carried_purged_at_ns_ = 0;  // the same
  uint64_t chunks_passed_over_ = 0;
};

}  // namespace neurontrace
