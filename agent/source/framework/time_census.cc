// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/time_census.h"

#include <algorithm>

#include "lib/base/time_units.h"

// How it works: the first times of a file are sampled and sorted, and a window slides over them.
// The fullest window is where the file's events are, and times far from its middle are not usable.
// The cost is that of sorting the sample.
namespace neurontrace {
namespace {

// Returns the sum in ns; nothing if it is negative or after TimeBounds::kLastNs.
std::optional<uint64_t> AddSigned(uint64_t base_ns, const DecimalTime& time) {
  uint64_t sum = 0;
  if (time.negative ? __builtin_sub_overflow(base_ns, time.ns, &sum)
                    : __builtin_add_overflow(base_ns, time.ns, &sum)) {
    return std::nullopt;
  }
  return sum > TimeBounds::kLastNs ? std::nullopt : std::optional(sum);
}

// Returns the middle of the largest group of times that lie within limits::kFrameworkTimeGroupNs,
// by a window over the sorted times. Of two groups of equal size the one with the file's first time
// wins, else the earlier. A few absurd times, or many that are far from each other, do not move it.
uint64_t MiddleOfMost(std::vector<uint64_t> times) {
  const uint64_t first_of_file = times.front();
  std::sort(times.begin(), times.end());
  size_t best_begin = 0;
  size_t best_count = 0;
  bool best_has_first = false;
  for (size_t begin = 0, end = 0; begin < times.size(); ++begin) {
    while (end < times.size() && times[end] - times[begin] <= limits::kFrameworkTimeGroupNs) ++end;
    const size_t count = end - begin;
    const bool has_first = times[begin] <= first_of_file && first_of_file <= times[end - 1];
    if (count < best_count || (count == best_count && (best_has_first || !has_first))) continue;
    best_begin = begin;
    best_count = count;
    best_has_first = has_first;
  }
  return times[best_begin + best_count / 2];
}

}  // namespace

std::optional<uint64_t> TimeBounds::Place(uint64_t base_ns, const DecimalTime& time) const {
  const auto at_ns = AddSigned(base_ns, time);
  if (!at_ns || *at_ns < first_ns || *at_ns > last_ns) return std::nullopt;
  return at_ns;
}

void TimeCensus::Add(const DecimalTime& time) {
  if (is_full()) return;
  if (time.ns != 0) {
    sample_.push_back(time);
  } else if (sample_.empty()) {
    begins_with_zero_ = true;
  }
}

TimeBounds TimeCensus::Bounds(uint64_t base_ns) const {
  std::vector<uint64_t> times;
  for (const DecimalTime& time : sample_) {
    if (const auto at_ns = AddSigned(base_ns, time)) times.push_back(*at_ns);
  }
  if (times.empty()) return {};
  const uint64_t middle_ns = MiddleOfMost(times);
  return {.first_ns = SubtractSaturating(middle_ns, limits::kFrameworkTimeSpreadNs),
          .last_ns = std::min(AddSaturating(middle_ns, limits::kFrameworkTimeSpreadNs),
                              TimeBounds::kLastNs)};
}

std::optional<uint64_t> TimeCensus::FirstTime(uint64_t base_ns) const {
  // A zero at the front of the file is its first time only if zero is plausible.
  const TimeBounds bounds = Bounds(base_ns);
  if (begins_with_zero_) {
    if (const auto first_ns = bounds.Place(base_ns, {})) return first_ns;
  }
  for (const DecimalTime& time : sample_) {
    if (const auto first_ns = bounds.Place(base_ns, time)) return first_ns;
  }
  return std::nullopt;
}

}  // namespace neurontrace
