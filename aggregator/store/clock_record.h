// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neurontrace {

// How an aggregator's timestamps relate to its machine's clock, as remembered by its store.
// Retention uses it so that a clock that was set forward does not make captures expire early. A
// plain value.
struct ClockRecord {
  // A forward step of the clock, by `step_ns`, that the aggregator adopted: it happened while the
  // aggregator was not running, or was held back for a while. All timestamps up to `at_ns` precede
  // it.
  struct ForwardStep {
    uint64_t at_ns = 0;
    uint64_t step_ns = 0;
    friend bool operator==(const ForwardStep&, const ForwardStep&) = default;
  };
  static constexpr size_t kStepsMax = 16;

  std::string boot;                // of the machine to which the offset applies; empty: unknown
  int64_t offset_ns = 0;           // timestamps minus CLOCK_BOOTTIME
  std::vector<ForwardStep> steps;  // oldest first

  // Adds a step. Beyond kStepsMax the two oldest are merged into one, at the later time: timestamps
  // between the two then count as older than both.
  void AddStep(const ForwardStep& step);
  // Returns by how many ns the expiry of something with this timestamp is to be delayed.
  uint64_t ForwardSince(uint64_t stamp_ns) const;

  friend bool operator==(const ClockRecord&, const ClockRecord&) = default;
};

// Its key in family `meta`.
inline constexpr std::string_view kClockRecordKey = "clock";

// Bytes that cannot be decoded, from a damaged or newer store, give an empty record: the record
// only makes expiry more exact, and must not keep a store from opening.
std::string EncodeClockRecord(const ClockRecord& record);
ClockRecord DecodeClockRecord(std::string_view text);

}  // namespace neurontrace
