// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/time_census.h"

#include <algorithm>

#include "base/time_units.h"

namespace neurontrace {
namespace {

std::optional<uint64_t> AddSigned(uint64_t base_ns, const DecimalTime& time) {
  uint64_t sum = 0;
  if (time.negative ? __builtin_sub_overflow(base_ns, time.ns, &sum)
                    : __builtin_add_overflow(base_ns, time.ns, &sum)) {
    return std::nullopt;
  }
  return sum > TimeBounds::kLastNs ? std::nullopt : std::optional(sum);
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
  const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return {.first_ns = SubtractSaturating(*middle, limits::kFrameworkTimeSpreadNs),
          .last_ns = std::min(AddSaturating(*middle, limits::kFrameworkTimeSpreadNs),
                              TimeBounds::kLastNs)};
}

std::optional<uint64_t> TimeCensus::FirstTime(uint64_t base_ns) const {
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
