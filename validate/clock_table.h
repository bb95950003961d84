// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "validate/clock_domains.h"
#include "validate/perfetto_numbers.h"
#include "validate/trace_finding.h"

namespace neurontrace {

// The clocks of a trace, as its clock snapshots relate them, and what a packet's timestamp is by
// the trace's clock. Each machine has clocks of its own, and clocks 64 to 127 are private to a
// sequence. One thread at a time.
class ClockTable {
 public:
  // What a packet says of whose clocks it means.
  struct Owner {
    uint32_t sequence = 0;  // 0: of none
    uint64_t machine = 0;   // 0: the host
  };

  explicit ClockTable(TraceFindingLog& log) : log_(log) {}

  // A ClockSnapshot in a packet of this owner. Throws protozero::exception.
  void TakeSnapshot(std::string_view snapshot, const Owner& owner);
  // A RemoteClockSync, which relates a machine's clocks to the host's in a way that is not looked
  // into: from here on they are taken for the same.
  void TakeRemoteSync(uint64_t machine);

  // The time of a packet; nullopt where it has none that Perfetto could know, which is then in the
  // log. `clock` 0: the machine's default.
  std::optional<uint64_t> ToTraceTime(uint64_t timestamp, uint64_t clock, const Owner& owner);

  bool is_realtime() const;

 private:
  struct Clock {
    bool is_placed = false;  // some snapshot has read it
    bool is_incremental = false;
    uint64_t multiplier_ns = 1;
    uint64_t now = 0;  // of an incremental one, in its own unit
    uint32_t line = 0;
    uint64_t offset_ns = 0;  // to the line, modulo 2^64
  };
  struct Reading {
    uint64_t id = 0;
    uint64_t timestamp = 0;
    bool is_incremental = false;
    uint64_t multiplier_ns = 1;
    uint64_t ns() const { return timestamp * multiplier_ns; }
  };
  struct Machine {
    bool is_synced = false;      // to the host, in a way that is not looked into
    uint64_t default_clock = 0;  // of times that name none; 0: they are the trace's
    bool has_converted = false;  // from then on its snapshots no longer choose the trace's clock
  };
  using Key = std::tuple<uint64_t, uint32_t, uint64_t>;  // the clock, its sequence, its machine

  static Key KeyOf(uint64_t clock, const Owner& owner);
  static Reading ReadClock(std::string_view bytes);
  Machine* MachineOf(uint64_t id);  // nullptr: there are too many
  bool IsSound(const Reading& reading, const Owner& owner);
  bool ReadSnapshot(std::string_view snapshot, const Owner& owner);
  const Reading* ReadingOf(uint64_t clock) const;
  void ChooseTraceClock(uint64_t primary, uint64_t machine);
  void CheckTraceClock(const Owner& owner);
  const Reading* BestKnown(const Owner& owner);
  Clock* Find(const Key& key);
  Clock* Ensure(const Key& key);  // nullptr: there are too many
  bool AreRelated(const Key& a, const Key& b);
  void TakeForTheSame(const Key& a, const Key& b);
  void RelateBoottime(uint64_t machine);
  std::optional<uint64_t> Convert(uint64_t timestamp, const Key& key);

  TraceFindingLog& log_;
  ClockDomains domains_;
  absl::flat_hash_map<Key, Clock> clocks_;
  absl::flat_hash_map<uint64_t, Machine> machines_;
  std::vector<Reading> readings_;  // of the snapshot at hand
  Key trace_clock_ = {perfetto_read::clocks::kTraceFile, 0, 0};
  uint64_t trace_clock_now_ns_ = 0;
  bool has_converted_ = false;  // a time of any machine
};

}  // namespace neurontrace
