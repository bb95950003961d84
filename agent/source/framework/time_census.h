// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "agent/source/framework/decimal_time.h"
#include "lib/trace/framework_limits.h"

namespace neurontrace {

// The range of usable times of a file's events, in ns. A plain value.
struct TimeBounds {
  // Readers of exports store times as signed numbers of nanoseconds.
  static constexpr uint64_t kLastNs = INT64_MAX - 1;

  uint64_t first_ns = 0;
  uint64_t last_ns = kLastNs;

  // Returns `base_ns` plus `time`; nothing if that is outside the bounds.
  std::optional<uint64_t> Place(uint64_t base_ns, const DecimalTime& time) const;
};

// Determines which times are plausible in a file from the first ones that it has: those within
// limits::kFrameworkTimeSpreadNs of the middle of the largest group that is close together. Times
// of 0 do not count, as some writers put 0 where they know none, sometimes for half of the events.
// A plain value; memory is bounded by limits::kFrameworkTimesSampledMax.
class TimeCensus {
 public:
  // Adds a time; ignores those beyond the sample.
  void Add(const DecimalTime& time);
  // Returns whether further times have no effect.
  bool is_full() const { return sample_.size() == limits::kFrameworkTimesSampledMax; }

  // Returns the bounds; `base_ns` is added to each time first. All times are usable if none was
  // seen.
  TimeBounds Bounds(uint64_t base_ns) const;
  // Returns the first usable time of the file, with the base; nothing if there is none.
  std::optional<uint64_t> FirstTime(uint64_t base_ns) const;

 private:
  std::vector<DecimalTime> sample_;  // in the order of the file, without 0
  bool begins_with_zero_ = false;
};

}  // namespace neurontrace
