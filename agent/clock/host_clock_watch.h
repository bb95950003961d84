// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "agent/clock/snapshot_filter.h"
#include "clock/host_clocks.h"
#include "trace/clock_evidence.h"

namespace neurontrace {

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
