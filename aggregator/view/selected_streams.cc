// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/selected_streams.h"

#include "aggregator/view/digest_feed.h"
#include "lib/base/status.h"

namespace neurontrace {

SelectedStreams::SelectedStreams(ChunkSource& source, const CaptureDescription& capture,
                                 const std::vector<uint32_t>& numbers, uint64_t chunks_max,
                                 DigestFeed* digests)
    : source_(source), chunks_max_(chunks_max), digests_(digests) {
  const absl::flat_hash_set<uint32_t> wanted(numbers.begin(), numbers.end());
  selected_.id = capture.id;
  selected_.name = capture.name;
  for (const StreamDescription& stream : capture.streams) {
    if (wanted.contains(stream.number)) selected_.streams.push_back(stream);
  }
}

void SelectedStreams::ReadOnly(const TimeSample& sample, const CaptureClocks& clocks) {
  sample_ = sample;
  for (const StreamDescription& stream : selected_.streams) {
    if (stream.has_own_time()) continue;  // its times are in no window
    clock_of_[stream.number] = &clocks.maps.For(stream.identity.worker, stream.clock_domain);
  }
}

absl::Status SelectedStreams::ReadIndex(uint32_t stream, IndexPosition from, size_t entries_max,
                                        std::vector<ChunkEntry>& entries) {
  entries.clear();
  if (digests_ != nullptr && digests_->HasAll(stream)) return absl::OkStatus();
  RETURN_IF_ERROR(source_.ReadIndex(stream, from, entries_max, entries));
  if (digests_ != nullptr) digests_->Mask(stream, entries);
  if (sample_.is_all()) return absl::OkStatus();
  const auto clock_of = clock_of_.find(stream);
  if (clock_of == clock_of_.end()) return absl::OkStatus();
  const ClockMap& clock = *clock_of->second;
  for (ChunkEntry& entry : entries) {
    const bool is_sampled = sample_.Overlaps(clock.ToReference(entry.first_timestamp_ns),
                                             clock.ToReference(entry.last_timestamp_ns));
    if (!is_sampled) entry.event_count = 0;
  }
  return absl::OkStatus();
}

absl::Status SelectedStreams::ReadColumns(uint32_t stream, uint64_t sequence,
                                          std::string& columns) {
  if (chunks_read_ >= chunks_max_) {
    ++chunks_refused_;
    refused_ = {stream, sequence};
    return DataLoss("chunk {} of stream {} was not read: one answer reads {} chunks", sequence,
                    stream, chunks_max_);
  }
  ++chunks_read_;
  return source_.ReadColumns(stream, sequence, columns);
}

// A chunk that this object refused is not damaged: the store must not note it.
void SelectedStreams::ReportUnreadable(uint32_t stream, uint64_t sequence,
                                       const absl::Status& why) {
  if (refused_ != std::pair(stream, sequence)) source_.ReportUnreadable(stream, sequence, why);
}

}  // namespace neurontrace
