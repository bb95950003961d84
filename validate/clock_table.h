// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "validate/trace_finding.h"

namespace neurontrace {

// The clocks of a trace, as its clock snapshots relate them, and what a packet's timestamp is by
// the trace's clock. Clocks 64 to 127 are private to a sequence. One thread at a time.
class ClockTable {
 public:
  explicit ClockTable(TraceFindingLog& log) : log_(log) {}

  // A ClockSnapshot in a packet of this sequence (0: of none). Throws protozero::exception.
  void TakeSnapshot(std::string_view snapshot, uint32_t sequence);

  // The time of a packet; nullopt where it has none that Perfetto could know, which is then in the
  // log. `clock` 0: the trace's own.
  std::optional<uint64_t> ToTraceTime(uint64_t timestamp, uint64_t clock, uint32_t sequence);

  bool is_realtime() const;

 private:
  struct Clock {
    bool is_incremental = false;
    uint64_t multiplier_ns = 1;
    bool is_related = false;  // to the trace's clock
    uint64_t now = 0;         // of an incremental one, in its own unit
    uint64_t offset_ns = 0;   // to the trace's clock, modulo 2^64
  };
  struct Reading {
    uint64_t id = 0;
    uint64_t timestamp = 0;
    bool is_incremental = false;
    uint64_t multiplier_ns = 1;
  };
  using Key = std::pair<uint64_t, uint32_t>;  // the clock, and its sequence

  static Key KeyOf(uint64_t clock, uint32_t sequence);
  static Reading ReadClock(std::string_view bytes);
  bool IsSound(const Reading& reading, uint32_t sequence);
  bool ReadSnapshot(std::string_view snapshot);
  const Reading* ReadingOf(uint64_t clock) const;
  std::optional<uint64_t> TraceTimeOfReadings(uint32_t sequence);

  TraceFindingLog& log_;
  absl::flat_hash_map<Key, Clock> clocks_;
  std::vector<Reading> readings_;  // of the snapshot at hand
  uint64_t trace_clock_ = 0;       // 0: none is known
  uint64_t trace_clock_now_ns_ = 0;
};

}  // namespace neurontrace
