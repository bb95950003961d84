// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neurontrace {

// How an aggregator's stamps relate to the machine's clock, as its store remembers it. A plain
// value.
struct ClockRecord {
  // The aggregator took over a clock that had been set forward by `step_ns` while it was down, or
  // held back: all stamps up to `at_ns` are of the time before.
  struct ForwardStep {
    uint64_t at_ns = 0;
    uint64_t step_ns = 0;
    friend bool operator==(const ForwardStep&, const ForwardStep&) = default;
  };
  static constexpr size_t kStepsMax = 16;

  std::string boot;                // of the machine, to which the offset applies; empty: not known
  int64_t offset_ns = 0;           // stamps minus CLOCK_BOOTTIME
  std::vector<ForwardStep> steps;  // oldest first

  // Adds a step; beyond kStepsMax the two oldest become one, which applies to more stamps.
  void AddStep(const ForwardStep& step);
  // How much later than its stamp alone says something of `stamp_ns` is to expire.
  uint64_t ForwardSince(uint64_t stamp_ns) const;

  friend bool operator==(const ClockRecord&, const ClockRecord&) = default;
};

// Its key in family meta.
inline constexpr std::string_view kClockRecordKey = "clock";

// A record of a store. What cannot be decoded, because the store is damaged or newer, is an empty
// record.
std::string EncodeClockRecord(const ClockRecord& record);
ClockRecord DecodeClockRecord(std::string_view text);

}  // namespace neurontrace
