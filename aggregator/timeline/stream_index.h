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

// Reads one stream's index once, forwards, and answers two questions from it: which chunk comes
// next by its first timestamp, and where the spans end whose stop is in a later chunk. It holds
// only entries that are still to come, and as many as these questions made it read ahead. Times are
// raw nanoseconds unless said otherwise. Used by one thread at a time; the source and the filter
// must outlive it.
class StreamIndex {
 public:
  // How far ahead the end of a span is searched for. Beyond these chunks, or with this many stops
  // waiting for their start, the search is given up and the span is shown as open.
  static constexpr size_t kPairingHorizonChunks = 512;
  static constexpr size_t kForeignStopsMax = 16'384;
  // Spans whose stop is in a later chunk. At the limit those whose stop can no longer come are
  // forgotten first, then new ones are not carried: their stop is shown as a span that lost its
  // start.
  static constexpr size_t kCarriedSpansMax = 16'384;

  // A chunk that is still to be read.
  struct Chunk {
    uint64_t first_timestamp_ns = 0;
    uint64_t sequence = 0;
    uint32_t event_count = 0;
    // False if the filter selects none of its events: the chunk keeps its turn, but is not read.
    bool is_selected = true;
  };
  // What a start and its stop have in common within one stream.
  struct SpanKey {
    uint64_t type_hash = 0;
    uint64_t tracking_id = 0;
    friend bool operator==(const SpanKey&, const SpanKey&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const SpanKey& key) {
      return H::combine(std::move(h), key.type_hash, key.tracking_id);
    }
  };

  // The time window in the stream's own times, widened by the caller as far as clocks may move
  // events.
  struct RawWindow {
    uint64_t from_ns = 0;
    uint64_t until_ns = UINT64_MAX;
  };
  // Chunks whose last timestamp is before the window's begin, or whose first is at or after its
  // end, are skipped. Chunks without any event that `filter` selects are returned in their turn
  // with is_selected false, because stops in them end spans of other chunks.
  StreamIndex(ChunkSource& source, const StreamDescription& stream, const TimelineFilter& filter,
              const RawWindow& window);

  // Reads the index until next() is certain. Must be called first, and again after each Pop. Fails
  // with the source's error.
  absl::Status Settle();
  // Returns the chunk with the earliest first timestamp of those not popped, or nullptr at the end.
  // Valid until the next call of Pop, Settle or TakeStop.
  const Chunk* next() const { return upcoming_.empty() ? nullptr : &upcoming_.front(); }
  // Removes next(), which must not be nullptr.
  void Pop();

  // Without a stop and without given_up, the whole index has been read and no stop exists.
  struct StopSearch {
    std::optional<uint64_t> stop_raw_ns;
    // The horizon was reached: a stop may exist beyond it.
    bool given_up = false;
  };
  // Searches for the stop of a span that has none in its own chunk, reading the index ahead as far
  // as necessary, and removes the stop that it returns. Spans must be searched for in the order of
  // their starts.
  absl::StatusOr<StopSearch> TakeStop(const SpanKey& key, uint64_t start_raw_ns);

  // Remembers that a span was yielded whose stop is, or may be, still to come, so that the stop's
  // attributes find their span. `end_ns` is the reference time of the span's end if it differs from
  // the stop's time, as under a device's clock.
  void Carry(const SpanKey& key, uint64_t span_id, const StopSearch& search,
             std::optional<uint64_t> end_ns);
  // Returns `end_ns` of the carried span that this stop ends, or nullopt.
  std::optional<uint64_t> CarriedEnd(const SpanKey& key, uint64_t stop_raw_ns) const;
  // Returns the id of the carried span with this key and forgets it; nullopt if there is none.
  std::optional<uint64_t> TakeCarried(const SpanKey& key);

 private:
  // Fetches further entries once the buffer is used up.
  absl::Status FillBuffer();
  // Consumes the next entry of the index. Returns false at its end.
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

  // Raw times of stops that wait for their start.
  absl::flat_hash_map<SpanKey, uint64_t> foreign_stops_;
  size_t purge_at_ = 1024;
  uint64_t stops_purged_at_ns_ = 0;  // popped_raw_ns_ at the last purge
  struct CarriedSpan {
    uint64_t span_id = 0;
    uint64_t stop_raw_ns = 0;  // 0: not known
    std::optional<uint64_t> end_ns;
  };
  absl::flat_hash_map<SpanKey, CarriedSpan> carried_;
  // popped_raw_ns_ at the last purge of carried_.
  uint64_t carried_purged_at_ns_ = 0;
  // Chunks behind the window: they count for the horizon, as stops in them are read too.
  uint64_t chunks_passed_over_ = 0;
};

}  // namespace neurontrace
