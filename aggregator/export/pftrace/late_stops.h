// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "aggregator/timeline/shape_table.h"
#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// Stops whose attributes come apart from their spans (kStopFollows): those of the batch at hand,
// and the spans without a length in the trace, which were ended before theirs came. One thread at a
// time.
class LateStops {
 public:
  static constexpr size_t kAwaitedMax = 65'536;  // beyond, a stop is not shown and counted

  // A span that was ended before its stop came.
  struct Ended {
    uint64_t id = 0;  // of its start event
    uint32_t track_uuid = 0;
  };

  void StartBatch() { of_batch_.clear(); }
  void Add(const TimelineRecord& stop) { of_batch_[stop.span_id] = &stop; }
  // The stop of this span in the batch at hand; nullptr: it has none.
  const TimelineRecord* Find(uint64_t span_id) const {
    const auto stop = of_batch_.find(span_id);
    return stop == of_batch_.end() ? nullptr : stop->second;
  }

  // Its stop is in no batch so far.
  void Await(const TimelineRecord& span, uint32_t track_uuid) {
    if (awaited_.size() >= kAwaitedMax) {
      ++beyond_limit_;
    } else {
      awaited_[span.span_id] = {span.id, track_uuid};
    }
  }
  // The span, where it is awaited: then no longer.
  std::optional<Ended> Take(uint64_t span_id) {
    const auto span = awaited_.find(span_id);
    if (span == awaited_.end()) return std::nullopt;
    const Ended ended = span->second;
    awaited_.erase(span);
    return ended;
  }

  // A span whose stop's attributes are to be written with its end, beside those of its start.
  void Expect(const TimelineRecord& span) {
    // Shapes beyond live as long as their chunk alone.
    const bool is_kept = span.shape->number < ShapeTable::kShapesMax;
    start_of_[span.span_id] = is_kept ? span.shape : nullptr;
  }
  // The shape of its start, nullptr: not known any more. Once for each span.
  const SharedShape* TakeStart(uint64_t span_id) {
    const auto start = start_of_.find(span_id);
    if (start == start_of_.end()) return nullptr;
    const SharedShape* const shape = start->second;
    start_of_.erase(start);
    return shape;
  }

  size_t awaited() const { return awaited_.size(); }
  uint64_t beyond_limit() const { return beyond_limit_; }

 private:
  absl::flat_hash_map<uint64_t, const TimelineRecord*> of_batch_;  // by span_id
  absl::flat_hash_map<uint64_t, Ended> awaited_;                   // likewise
  absl::flat_hash_map<uint64_t, const SharedShape*> start_of_;     // likewise; as many as open ends
  uint64_t beyond_limit_ = 0;
};

}  // namespace neurontrace
