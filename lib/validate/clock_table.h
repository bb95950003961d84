// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lib/validate/perfetto_numbers.h"
#include "lib/validate/trace_finding.h"

namespace neurontrace {

// The clocks of a trace, as its clock snapshots relate them. Converts a packet's timestamp to the
// trace's clock as Perfetto's importer of August 2026 does. Clocks 64 to 127 are private to a
// sequence. One thread at a time.
class ClockTable {
 public:
  // `log` must outlive this.
  explicit ClockTable(TraceFindingLog& log) : log_(log) {}

  // Reads a ClockSnapshot in a packet of this sequence (0: of none), and logs what is wrong with
  // it. Throws protozero::exception.
  void TakeSnapshot(std::string_view snapshot, uint32_t sequence);

  // Returns the time of a packet in ns of the trace's clock; nullopt if Perfetto cannot determine
  // it, which is logged. `clock` 0: the file's default. Called once for each packet in the order of
  // the file, as incremental clocks advance.
  std::optional<uint64_t> ToTraceTime(uint64_t timestamp, uint64_t clock, uint32_t sequence);

  // Returns whether times are ns since the Unix epoch.
  bool is_realtime() const { return trace_clock_.first == perfetto_read::clocks::kRealtime; }

 private:
  // Clocks that are related are on one line: a time of the line is the clock's in ns plus its
  // offset, modulo 2^64.
  struct Clock {
    uint64_t line = 0;
    uint64_t offset_ns = 0;
    bool is_placed = false;  // some snapshot has read it; otherwise it is alone on its line
    bool is_incremental = false;
    uint64_t multiplier_ns = 1;
    uint64_t now = 0;  // of an incremental one, in its own unit
  };
  // A clock's value in a snapshot, in its own unit.
  struct Reading {
    uint64_t id = 0;
    uint64_t timestamp = 0;
    bool is_incremental = false;
    uint64_t multiplier_ns = 1;
    uint64_t ns() const { return timestamp * multiplier_ns; }
  };
  using Key = std::pair<uint64_t, uint32_t>;  // the clock and its sequence; 0: of all

  static Key KeyOf(uint64_t clock, uint32_t sequence);
  bool ReadSnapshot(std::string_view snapshot);
  bool IsSound(const Reading& reading, uint32_t sequence);
  const Reading* ReadingOf(uint64_t clock) const;
  void ChooseTraceClock(uint64_t primary);
  void CheckTraceClock();
  const Reading* BestKnown(uint32_t sequence);
  Clock* Find(const Key& key);
  Clock* Ensure(const Key& key);  // nullptr: there are too many
  bool IsRelated(const Key& key);
  // Time `a_ns` of one line is time `b_ns` of the other: the second becomes a part of the first.
  void Join(uint64_t a, uint64_t a_ns, uint64_t b, uint64_t b_ns);
  void RelateBoottime();

  TraceFindingLog& log_;
  absl::flat_hash_map<Key, Clock> clocks_;
  std::vector<Reading> readings_;  // of the snapshot at hand
  Key trace_clock_ = {perfetto_read::clocks::kTraceFile, 0};
  uint64_t trace_clock_now_ns_ = 0;
  uint64_t default_clock_ = 0;  // of times that name no clock; 0: they are of the trace's clock
  bool has_converted_ = false;  // from then on snapshots no longer choose the trace's clock
};

}  // namespace neurontrace
