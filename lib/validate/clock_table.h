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
// sequence. Used by TraceValidator; one thread at a time.
//
// Clocks that snapshots relate form a line with constant offsets, and a newer snapshot moves its
// clocks on the line. A conversion is one look-up.
class ClockTable {
 public:
  // `log` must outlive this.
  explicit ClockTable(TraceFindingLog& log) : log_(log) {}

  // Reads a ClockSnapshot in a packet of this sequence (0: of none), and logs what is wrong with
  // it. Throws protozero::exception.
  void HandleSnapshot(std::string_view snapshot, uint32_t sequence);

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
    // Lines have numbers; equal numbers mean that the clocks are related.
    uint64_t line = 0;
    uint64_t offset_ns = 0;
    bool is_placed = false;  // some snapshot has read it; otherwise it is alone on its line
    // Its timestamps are differences from the packet before.
    bool is_incremental = false;
    // Length of a unit in ns.
    uint64_t multiplier_ns = 1;
    uint64_t now = 0;  // of an incremental one, in its own unit
  };
  // A clock's value in a snapshot, in its own unit.
  struct Reading {
    // A number of ClockSnapshot.Clock, such as kRealtime.
    uint64_t id = 0;
    // In units of `multiplier_ns`.
    uint64_t timestamp = 0;
    bool is_incremental = false;
    uint64_t multiplier_ns = 1;
    // Wraps around for impossible values, which only mislead their own file.
    uint64_t ns() const { return timestamp * multiplier_ns; }
  };
  using Key = std::pair<uint64_t, uint32_t>;  // the clock and its sequence; 0: of all

  // Returns the key, with sequence 0 for a clock of the whole file.
  static Key KeyOf(uint64_t clock, uint32_t sequence);
  // Fills `readings_`. Returns false if the snapshot does not count.
  bool ReadSnapshot(std::string_view snapshot);
  // Returns whether a reading is consistent with earlier ones, which is logged otherwise.
  bool IsValid(const Reading& reading, uint32_t sequence);
  // Returns the snapshot's reading of a clock, or nullptr.
  const Reading* ReadingOf(uint64_t clock) const;
  // Applies a snapshot's choice of the trace's clock; 0: it names none.
  void ChooseTraceClock(uint64_t primary);
  // Logs it if the trace's clock runs backwards.
  void CheckTraceClock();
  // Returns the reading that places the snapshot on a line; nullptr without readings.
  const Reading* BestKnown(uint32_t sequence);
  // Returns a known clock, or nullptr. Ensure adds it if it is new.
  Clock* Find(const Key& key);
  Clock* Ensure(const Key& key);  // nullptr: there are too many
  // Returns whether times of the clock can be converted to the trace's.
  bool IsRelated(const Key& key);
  // Makes the second line a part of the first: time `a_ns` of line `a` is time `b_ns` of line `b`.
  void Join(uint64_t a, uint64_t a_ns, uint64_t b, uint64_t b_ns);
  // Checks that BOOTTIME is related to the trace's clock at the first conversion.
  void RelateBoottime();

  TraceFindingLog& log_;
  // By clock and sequence; at most validate_limits::kClocksMax.
  absl::flat_hash_map<Key, Clock> clocks_;
  std::vector<Reading> readings_;  // of the snapshot at hand
  // Perfetto's default until a snapshot names another clock.
  Key trace_clock_ = {perfetto_read::clocks::kTraceFile, 0};
  // The greatest reading of the trace's clock so far.
  uint64_t trace_clock_now_ns_ = 0;
  uint64_t default_clock_ = 0;  // of times that name no clock; 0: they are of the trace's clock
  bool has_converted_ = false;  // from then on snapshots no longer choose the trace's clock
};

}  // namespace neurontrace
