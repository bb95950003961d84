// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "agent/source/framework/decimal_time.h"
#include "lib/trace/framework_limits.h"

namespace neurontrace {

// The times that a file's events can have. What lies outside is no usable time. A plain value.
struct TimeBounds {
  // Readers write times as signed numbers of nanoseconds.
  static constexpr uint64_t kLastNs = INT64_MAX - 1;

  uint64_t first_ns = 0;
  uint64_t last_ns = kLastNs;

  // `base_ns` plus `time`; nothing if that lies outside the bounds.
  std::optional<uint64_t> Place(uint64_t base_ns, const DecimalTime& time) const;
};

// Finds out which times are plausible in a file from the first ones that it has: those within
// limits::kFrameworkTimeSpreadNs of the middle of the largest group that is close together. Times
// of 0 do not count, as writers put 0 where they know none, sometimes for half of the events. A
// plain value.
class TimeCensus {
 public:
  void Add(const DecimalTime& time);
  // Whether further times change nothing any more.
  bool is_full() const { return sample_.size() == limits::kFrameworkTimesSampledMax; }

  // `base_ns`: what is added to each time.
  TimeBounds Bounds(uint64_t base_ns) const;
  // The first usable time of the file, with the base; nothing if there is none.
  std::optional<uint64_t> FirstTime(uint64_t base_ns) const;

 private:
  std::vector<DecimalTime> sample_;  // in the order of the file, without 0
  bool begins_with_zero_ = false;
};

}  // namespace neurontrace
