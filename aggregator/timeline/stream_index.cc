// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/stream_index.h"

#include <algorithm>
#include <cassert>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

constexpr size_t kIndexEntriesPerRead = 32;

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
  KeepForeignStops(entry);
  if (entry.first_timestamp_ns >= until_raw_ns_) {
    ++chunks_passed_over_;
  } else if (entry.event_count > 0) {
    upcoming_.push_back(
        {entry.first_timestamp_ns, entry.sequence, entry.event_count, filter_.MaySelectOf(entry)});
    std::push_heap(upcoming_.begin(), upcoming_.end(), ComesLater);
  }
  return true;
}

// A stop that is older than every chunk still to be read has no start: it is forgotten when room is
// short. Looked for only when a chunk was popped since: until then nothing became older. The stop
// that came first stands, because spans are looked up in the order of their starts.
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
    // No entry from here on begins before this.
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
  if (!search.stop_raw_ns && !search.given_up) return;
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
