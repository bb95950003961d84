// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "aggregator/timeline/shape_table.h"
#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// Stops whose attributes come separately from their spans (kStopFollows): those of the current
// batch, and spans that are written without a length, whose end came before the stop. Used by one
// thread at a time.
class LateStops {
 public:
  // Beyond, the attributes of a stop are omitted and counted.
  static constexpr size_t kAwaitedMax = 65'536;

  // A span that was ended before its stop came. Identifies the instant that shows the late
  // attributes.
  struct Ended {
    // The id of its start event.
    uint64_t id = 0;
    uint32_t track_uuid = 0;
  };

  void StartBatch() { of_batch_.clear(); }
  void Add(const TimelineRecord& stop) { of_batch_[stop.span_id] = &stop; }
  // Returns this span's stop in the current batch, or nullptr.
  const TimelineRecord* Find(uint64_t span_id) const {
    const auto stop = of_batch_.find(span_id);
    return stop == of_batch_.end() ? nullptr : stop->second;
  }

  // Records that the span's stop has not come so far.
  void Await(const TimelineRecord& span, uint32_t track_uuid) {
    if (awaited_.size() >= kAwaitedMax) {
      ++beyond_limit_;
    } else {
      awaited_[span.span_id] = {span.id, track_uuid};
    }
  }
  // Returns the span if its stop is awaited, and forgets it.
  std::optional<Ended> Take(uint64_t span_id) {
    const auto span = awaited_.find(span_id);
    if (span == awaited_.end()) return std::nullopt;
    const Ended ended = span->second;
    awaited_.erase(span);
    return ended;
  }

  // Records that the stop's attributes are to be written with the span's end, beside those of its
  // start.
  void Expect(const TimelineRecord& span) {
    // Shapes with higher numbers live only as long as their chunk.
    const bool is_kept = span.shape->number < ShapeTable::kShapesMax;
    start_of_[span.span_id] = is_kept ? span.shape : nullptr;
  }
  // Returns the shape of the span's start, or nullptr if it no longer exists. Called once for each
  // span.
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
  absl::flat_hash_map<uint64_t, Ended> awaited_;                   // the same
  absl::flat_hash_map<uint64_t, const SharedShape*> start_of_;     // the same; as many as open ends
  uint64_t beyond_limit_ = 0;
};

}  // namespace neurontrace
