// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "lib/clock/host_clocks.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// Of many snapshots those that say something: what was between two kept ones lies on the straight
// line from one to the other, to within its own bracket and 50 ns, and the kernel steered the same
// way all the time. The first are kept, then at least one every second of raw: who reads them does
// not know of those let go, and trusts REALTIME only as far as a slew that nobody saw can have
// taken it between two kept ones. At most kKeptPerSecond on average; what is let go beyond that is
// counted. A plain value.
class SnapshotFilter {
 public:
  static constexpr double kKeptPerSecond = 2;
  static constexpr double kKeptAtOnceMax = 32;
  static constexpr uint64_t kIntervalMaxNs = 1'000'000'000;
  static constexpr uint64_t kKeptAtFirst = 3;  // a rate is known by its neighbours

  // Appends to `kept` what is worth it now that `snapshot` is there: nothing, it, or the one before
  // and it.
  void Add(const ClockSnapshot& snapshot, std::vector<ClockSnapshot>& kept);
  // The same for one that must be kept, and the one before it: something happened between them.
  void Keep(const ClockSnapshot& snapshot, std::vector<ClockSnapshot>& kept);

  // The one before; nullptr at the beginning.
  const ClockSnapshot* last() const { return last_ ? &*last_ : nullptr; }
  uint64_t let_go() const { return let_go_; }

 private:
  // The slopes, against raw, of lines from the kept snapshot that meet all that came after it.
  struct Cone {
    double least = -1e9;
    double greatest = 1e9;
    bool Holds(double slope) const { return slope >= least && slope <= greatest; }
    void Narrow(double slope, double tolerance);
  };
  struct Slopes {
    double realtime = 0;
    double monotonic = 0;
    double tolerance = 0;
  };
  Slopes SlopesTo(const ClockSnapshot& snapshot) const;
  bool SaysSomething(const ClockSnapshot& snapshot) const;
  void Begin(const ClockSnapshot& snapshot);

  std::optional<ClockSnapshot> kept_;
  std::optional<ClockSnapshot> last_;
  Cone realtime_;
  Cone monotonic_;
  double allowance_ = kKeptAtOnceMax;
  uint64_t kept_at_first_ = 0;
  uint64_t let_go_ = 0;
};

// Watches the clocks of the host: a heartbeat that finds out when nothing ran, snapshots that are
// worth keeping, suspends, and how far REALTIME went when somebody set it. What it finds goes into
// the evidence that it was given. One thread.
class HostClockWatch {
 public:
  // To be woken costs more than all that is done then: 4 us, and ten times that on a busy virtual
  // machine, which at this beat is less than a thousandth of a processor.
  static constexpr uint64_t kBeatNs = 50'000'000;
  static constexpr int kBeatsPerSnapshot = 2;
  // A beat that is late by more than this, beyond what the thread had to wait for a processor,
  // was late because the machine stood still.
  static constexpr uint64_t kLateMaxNs = 100'000'000;

  // `waited_ns`: for how long this thread has waited for a processor in all, or null where nobody
  // knows. The others outlive this.
  HostClockWatch(const HostClocks& clocks, std::function<uint64_t()> waited_ns, ClockEvidence& out);

  // Every kBeatNs. Returns true when the clocks may not be what they were: after a pause or a
  // suspend.
  bool Beat();
  // One that is kept, whatever it says.
  void KeepSnapshot() { TakeSnapshot(/*keep=*/true); }
  // REALTIME was set a moment ago.
  void OnRealtimeSet();
  // Something happened to raw itself since `since_raw_ns`: a snapshot is kept now.
  void OnBreak(ClockEventKind kind, uint64_t since_raw_ns);

  // Of the last beat.
  uint64_t raw_ns() const { return readings_.empty() ? 0 : readings_.back().raw_begin_ns; }
  uint64_t snapshots_let_go() const { return filter_.let_go(); }

 private:
  struct Reading {
    uint64_t raw_begin_ns = 0;
    uint64_t raw_end_ns = 0;
    int64_t realtime_minus_raw = 0;
  };
  bool TakeSnapshot(bool keep);
  void Remember(const ClockSnapshot& snapshot);

  const HostClocks& clocks_;
  const std::function<uint64_t()> waited_ns_;
  ClockEvidence& out_;
  SnapshotFilter filter_;
  std::deque<Reading> readings_;  // of late, since the last step that was told
  int beats_to_snapshot_ = 0;
  uint64_t waited_at_snapshot_ns_ = 0;
};

// For HostClockWatch: what /proc says the thread has waited for a processor that calls it, always
// the same one; 0 where it does not say.
std::function<uint64_t()> MakeProcessorWait();

}  // namespace neurontrace
