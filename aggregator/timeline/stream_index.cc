// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/stream_index.h"

#include <algorithm>
#include <cassert>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Enough that reading is not dominated by seeks, few enough that memory is small for thousands of
// streams.
constexpr size_t kIndexEntriesPerRead = 32;

// For the heap functions of the standard library, whose greatest element is on top: hence later is
// less. The sequence makes the order, and with it every export, the same each time.
bool ComesLater(const StreamIndex::Chunk& a, const StreamIndex::Chunk& b) {
  return std::pair(a.first_timestamp_ns, a.sequence) > std::pair(b.first_timestamp_ns, b.sequence);
}

}  // namespace

StreamIndex::StreamIndex(ChunkSource& source, const StreamDescription& stream,
                         const TimelineFilter& filter, const RawWindow& window)
    : source_(source),
      filter_(filter),
      stream_(stream.number),
      chunk_span_max_ns_(stream.chunk_span_max_ns),
      until_raw_ns_(window.until_ns),
      position_{window.from_ns, 0} {}

// A short answer means the end, so that the index is not asked once more for nothing.
absl::Status StreamIndex::FillBuffer() {
  assert(buffer_at_ <= buffer_.size());
  if (buffer_at_ < buffer_.size() || fetched_all_) return absl::OkStatus();
  RETURN_IF_ERROR(source_.ReadIndex(stream_, position_, kIndexEntriesPerRead, buffer_));
  assert(buffer_.size() <= kIndexEntriesPerRead);
  buffer_at_ = 0;
  fetched_all_ = buffer_.size() < kIndexEntriesPerRead;
  if (!buffer_.empty()) {
    position_ = {buffer_.back().last_timestamp_ns, buffer_.back().sequence + 1};
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> StreamIndex::ReadEntry() {
  RETURN_IF_ERROR(FillBuffer());
  if (buffer_at_ == buffer_.size()) return false;
  const ChunkEntry& entry = buffer_[buffer_at_++];
  // First, because a chunk behind the window or without selected events can have the stop of a span
  // that is shown.
  KeepForeignStops(entry);
  if (entry.first_timestamp_ns >= until_raw_ns_) {
    ++chunks_passed_over_;
  } else if (entry.event_count > 0) {
    upcoming_.push_back({entry.first_timestamp_ns, entry.sequence, entry.event_count,
                         filter_.CanSelectFrom(entry)});
    std::push_heap(upcoming_.begin(), upcoming_.end(), ComesLater);
  }
  return true;
}

// A stop that is older than every chunk still to be read has no start and is forgotten when room is
// short. They are searched for only if a chunk was popped since the last purge: until then nothing
// became older. purge_at_ doubles with what remains, so that purging stays linear over all stops.
// The first stop of a key is kept, because spans are looked up in the order of their starts.
void StreamIndex::KeepForeignStops(const ChunkEntry& entry) {
  for (const ForeignStop& stop : entry.foreign_stops) {
    if (foreign_stops_.size() >= purge_at_ && stops_purged_at_ns_ < popped_raw_ns_) {
      stops_purged_at_ns_ = popped_raw_ns_;
      absl::erase_if(foreign_stops_,
                     [this](const auto& stop) { return stop.second < popped_raw_ns_; });
      purge_at_ = std::min(kForeignStopsMax, std::max<size_t>(1024, 2 * foreign_stops_.size()));
    }
    if (foreign_stops_.size() >= kForeignStopsMax) return;
    const auto [it, is_new] =
        foreign_stops_.try_emplace({stop.type_hash, stop.tracking_id}, stop.timestamp_ns);
    if (!is_new && it->second < popped_raw_ns_) it->second = stop.timestamp_ns;
  }
}

absl::Status StreamIndex::Settle() {
  while (true) {
    RETURN_IF_ERROR(FillBuffer());
    if (buffer_at_ == buffer_.size()) return absl::OkStatus();
    // The index is ordered by last timestamps, and no chunk spans more than chunk_span_max_ns_: no
    // entry from here on begins before `earliest`. Without this bound the whole index would have to
    // be read before the first chunk is certain.
    const uint64_t last = buffer_[buffer_at_].last_timestamp_ns;
    const uint64_t earliest = last > chunk_span_max_ns_ ? last - chunk_span_max_ns_ : 0;
    if (!upcoming_.empty() && upcoming_.front().first_timestamp_ns <= earliest) break;
    if (upcoming_.empty() && earliest >= until_raw_ns_) break;
    RETURN_IF_ERROR(ReadEntry().status());
  }
  return absl::OkStatus();
}

void StreamIndex::Pop() {
  assert(!upcoming_.empty());
  popped_raw_ns_ = upcoming_.front().first_timestamp_ns;
  std::pop_heap(upcoming_.begin(), upcoming_.end(), ComesLater);
  upcoming_.pop_back();
}

absl::StatusOr<StreamIndex::StopSearch> StreamIndex::TakeStop(const SpanKey& key,
                                                              uint64_t start_raw_ns) {
  while (true) {
    const auto it = foreign_stops_.find(key);
    if (it != foreign_stops_.end() && it->second >= start_raw_ns) {
      const StopSearch found{.stop_raw_ns = it->second};
      foreign_stops_.erase(it);
      return found;
    }
    // Chunks read ahead wait in upcoming_, so this bounds memory as well as time.
    if (upcoming_.size() + chunks_passed_over_ >= kPairingHorizonChunks ||
        foreign_stops_.size() >= kForeignStopsMax) {
      return StopSearch{.given_up = true};
    }
    ASSIGN_OR_RETURN(const bool more, ReadEntry());
    if (!more) return StopSearch{};
  }
}

void StreamIndex::Carry(const SpanKey& key, uint64_t span_id, const StopSearch& search,
                        std::optional<uint64_t> end_ns) {
  // No stop exists: nothing will come that has to find this span.
  if (!search.stop_raw_ns && !search.given_up) return;
  // A span whose stop was given up on has stop_raw_ns 0, is older than everything, and goes first.
  if (carried_.size() >= kCarriedSpansMax && carried_purged_at_ns_ < popped_raw_ns_) {
    carried_purged_at_ns_ = popped_raw_ns_;
    absl::erase_if(carried_,
                   [this](const auto& span) { return span.second.stop_raw_ns < popped_raw_ns_; });
  }
  if (carried_.size() >= kCarriedSpansMax) return;
  carried_.insert_or_assign(key, CarriedSpan{span_id, search.stop_raw_ns.value_or(0), end_ns});
}

std::optional<uint64_t> StreamIndex::CarriedEnd(const SpanKey& key, uint64_t stop_raw_ns) const {
  if (carried_.empty()) return std::nullopt;
  const auto it = carried_.find(key);
  if (it == carried_.end() || it->second.stop_raw_ns != stop_raw_ns) return std::nullopt;
  return it->second.end_ns;
}

std::optional<uint64_t> StreamIndex::TakeCarried(const SpanKey& key) {
  assert(carried_.size() <= kCarriedSpansMax);
  const auto it = carried_.find(key);
  if (it == carried_.end()) return std::nullopt;
  const uint64_t span_id = it->second.span_id;
  carried_.erase(it);
  return span_id;
}

}  // namespace neurontrace
