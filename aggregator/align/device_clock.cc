// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/device_clock.h"

#include <algorithm>

#include "aggregator/align/wide.h"

namespace neurontrace {
namespace {

// The segments that an event may lie in: one, or two that follow each other.
struct Candidates {
  size_t first = 0;
  size_t last = 0;
};

bool MayHold(const DeviceSegmentRange& range, const DeviceTime& time) {
  if (time.exec_id.has_value()) {
    return range.first_exec_id <= *time.exec_id && *time.exec_id <= range.last_exec_id;
  }
  return range.first_sequence <= time.sequence && time.sequence <= range.last_sequence;
}

Candidates FindCandidates(const std::vector<DeviceSegmentRange>& ranges, const DeviceTime& time) {
  // Ranges ascend by where they begin, so this is the last one that has begun.
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), time.sequence,
      [](uint64_t sequence, const DeviceSegmentRange& r) { return sequence < r.first_sequence; });
  if (after == ranges.begin()) return {0, 0};
  const auto before = static_cast<size_t>(after - ranges.begin()) - 1;
  if (before + 1 == ranges.size() && time.sequence > ranges[before].last_sequence) {
    // Only by its execution can it belong to an earlier one.
    if (before > 0 && !MayHold(ranges[before], time) && MayHold(ranges[before - 1], time)) {
      return {before - 1, before - 1};
    }
    return {before, before};
  }
  // An event may be written down after the next segment has begun, or before its own has.
  const size_t from = before == 0 ? 0 : before - 1;
  const size_t to = std::min(before + 1, ranges.size() - 1);
  std::optional<size_t> only;
  size_t holding = 0;
  for (size_t i = from; i <= to; ++i) {
    if (!MayHold(ranges[i], time)) continue;
    ++holding;
    only = i;
  }
  if (holding == 1) return {*only, *only};
  if (time.sequence <= ranges[before].last_sequence) return {before, before};
  return {before, to};
}

struct Range {
  Wide min = 0;
  Wide max = 0;
  bool Meets(const Range& other) const { return min <= other.max && other.min <= max; }
};

Range RangeOf(const ClockEstimate& estimate, uint64_t bound_ns) {
  return {Wide{estimate.y_ns} - Wide{bound_ns}, Wide{estimate.y_ns} + Wide{bound_ns}};
}

Range Union(Range a, Range b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }

ClockReading ReadBetween(const DeviceClockModel& model, Candidates candidates, uint64_t x_ns) {
  const auto& segments = model.clock.segments;
  const ClockEstimate before = EvaluateSegment(segments[candidates.first], x_ns);
  const ClockEstimate after = EvaluateSegment(segments[candidates.last], x_ns);
  // What happened between the two happened, on the host's clock, between what is known of both.
  const ClockEstimate begin =
      EvaluateSegment(segments[candidates.first], model.ranges[candidates.first].x_end_ns);
  const ClockEstimate end =
      EvaluateSegment(segments[candidates.last], model.ranges[candidates.last].x_begin_ns);
  const Range between{RangeOf(begin, begin.bound_ns).min, RangeOf(end, end.bound_ns).max};
  const bool can_be_before = RangeOf(before, before.bound_ns).Meets(between);
  const bool can_be_after = RangeOf(after, after.bound_ns).Meets(between);
  if (can_be_before && !can_be_after) return {before, candidates.first, false};
  if (can_be_after && !can_be_before) return {after, candidates.last, false};
  const Range possible = Union(RangeOf(before, before.bound_ns), RangeOf(after, after.bound_ns));
  const Range likely =
      Union(RangeOf(before, before.likely_bound_ns), RangeOf(after, after.likely_bound_ns));
  const Wide y = likely.min + (likely.max - likely.min) / 2;
  const auto reach = [y](Range range) { return Saturate(std::max(range.max - y, y - range.min)); };
  return {{Saturate(y), reach(possible), reach(likely)}, candidates.first, true};
}

}  // namespace

ClockReading ReadDeviceClock(const DeviceClockModel& model, const DeviceTime& time) {
  if (model.clock.segments.empty()) return {{time.x_ns, kNoBound, kNoBound}, 0, false};
  const Candidates candidates = FindCandidates(model.ranges, time);
  if (candidates.first != candidates.last) return ReadBetween(model, candidates, time.x_ns);
  return {EvaluateSegment(model.clock.segments[candidates.first], time.x_ns), candidates.first,
          false};
}

}  // namespace neurontrace
