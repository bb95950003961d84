// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/device/device_clock.h"

#include <algorithm>

#include "aggregator/align/core/clock_lines.h"
#include "aggregator/align/core/clock_maps.h"
#include "aggregator/align/core/wide.h"

namespace neurontrace {
namespace {

// The segments that an event may belong to: one, or two consecutive ones.
struct Candidates {
  size_t first = 0;
  size_t last = 0;
};

// Decides by the ring. If that leaves it open, or the event was recorded late, decides by the
// execution, provided that executions continue to be counted across the two segments.
Candidates FindCandidates(const std::vector<DeviceSegmentRange>& ranges, const DeviceTime& time) {
  // Finds the last segment that begins at or before the event's place.
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), time.sequence,
      [](uint64_t sequence, const DeviceSegmentRange& r) { return sequence < r.first_sequence; });
  if (after == ranges.begin()) return {0, 0};
  const auto begun = static_cast<size_t>(after - ranges.begin()) - 1;
  if (begun > 0 && time.exec_id.has_value() &&
      SideOf(ranges[begun - 1], ranges[begun], *time.exec_id) == DeviceSegmentSide::kBefore) {
    return {begun - 1, begun - 1};
  }
  if (after == ranges.end() || time.sequence <= ranges[begun].last_sequence) return {begun, begun};
  if (time.exec_id.has_value()) {
    const DeviceSegmentSide side = SideOf(ranges[begun], *after, *time.exec_id);
    if (side == DeviceSegmentSide::kBefore) return {begun, begun};
    if (side == DeviceSegmentSide::kAfter) return {begun + 1, begun + 1};
  }
  return {begun, begun + 1};
}

// Values of y that are possible; the minimum may be below 0.
struct HostRange {
  Wide min = 0;
  Wide max = 0;
  bool Meets(const HostRange& other) const { return min <= other.max && other.min <= max; }
};

// Returns the y within a bound of the estimate.
HostRange HostRangeOf(const ClockEstimate& estimate, uint64_t bound_ns) {
  return {Wide{estimate.y_ns} - Wide{bound_ns}, Wide{estimate.y_ns} + Wide{bound_ns}};
}

// Returns the smallest range that contains both.
HostRange Union(HostRange a, HostRange b) {
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}

// Reads both candidates and excludes one if its y is not between the two segments. If both remain,
// or neither, the reading is halfway and its bounds include both.
ClockReading ReadBetween(const DeviceClockModel& model, Candidates candidates, uint64_t x_ns) {
  const auto& segments = model.clock.segments;
  const ClockEstimate before = EvaluateSegment(segments[candidates.first], x_ns);
  const ClockEstimate after = EvaluateSegment(segments[candidates.last], x_ns);
  // What happened between the two segments happened, on the host's clock, between the end of the
  // first and the begin of the second.
  const ClockEstimate begin =
      EvaluateSegment(segments[candidates.first], model.ranges[candidates.first].x_end_ns);
  const ClockEstimate end =
      EvaluateSegment(segments[candidates.last], model.ranges[candidates.last].x_begin_ns);
  const HostRange between{HostRangeOf(begin, begin.bound_ns).min,
                          HostRangeOf(end, end.bound_ns).max};
  const bool can_be_before = HostRangeOf(before, before.bound_ns).Meets(between);
  const bool can_be_after = HostRangeOf(after, after.bound_ns).Meets(between);
  if (can_be_before && !can_be_after) return {before, candidates.first, false};
  if (can_be_after && !can_be_before) return {after, candidates.last, false};
  const HostRange possible =
      Union(HostRangeOf(before, before.bound_ns), HostRangeOf(after, after.bound_ns));
  const HostRange likely =
      Union(HostRangeOf(before, before.likely_bound_ns), HostRangeOf(after, after.likely_bound_ns));
  const Wide y = likely.min + (likely.max - likely.min) / 2;
  const auto reach = [y](HostRange range) {
    return Saturate(std::max(range.max - y, y - range.min));
  };
  return {{Saturate(y), reach(possible), reach(likely)}, candidates.first, true};
}

}  // namespace

DeviceSegmentSide SideOf(const DeviceSegmentRange& before, const DeviceSegmentRange& after,
                         uint64_t exec_id) {
  if (after.first_exec_id <= before.last_exec_id) return DeviceSegmentSide::kUnknown;
  if (exec_id <= before.last_exec_id) return DeviceSegmentSide::kBefore;
  if (exec_id >= after.first_exec_id) return DeviceSegmentSide::kAfter;
  return DeviceSegmentSide::kUnknown;
}

ClockReading ReadDeviceClock(const DeviceClockModel& model, const DeviceTime& time) {
  if (model.clock.segments.empty()) return {{time.x_ns, kNoBound, kNoBound}, 0, false};
  const Candidates candidates = FindCandidates(model.ranges, time);
  if (candidates.first != candidates.last) return ReadBetween(model, candidates, time.x_ns);
  return {EvaluateSegment(model.clock.segments[candidates.first], time.x_ns), candidates.first,
          false};
}

// Each segment becomes a map by itself, because their counters overlap.
DeviceMap DeviceMapOf(const DeviceClockModel& model) {
  DeviceMap map;
  for (size_t i = 0; i < model.clock.segments.size(); ++i) {
    ClockModel alone;
    alone.segments.push_back(model.clock.segments[i]);
    const DeviceSegmentRange& range = model.ranges[i];
    map.parts.push_back({range.first_sequence, range.last_sequence, range.first_exec_id,
                         range.last_exec_id, MapOf(alone)});
  }
  return map;
}

}  // namespace neurontrace
