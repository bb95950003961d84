// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "agent/clock/snapshot_filter.h"
#include "lib/clock/host_clocks.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// Watches the clocks of the host: a heartbeat detects when the machine did not run, snapshots are
// taken and filtered, suspends are recognised by BOOTTIME against MONOTONIC, and steps of REALTIME
// are located and measured. Findings are appended to the evidence that it was given. One thread.
class HostClockWatch {
 public:
  // To be woken costs more than all the work of a beat: 4 us, and ten times that on a busy virtual
  // machine, which at this interval is below a thousandth of a processor.
  static constexpr uint64_t kTickNs = 50'000'000;
  static constexpr int kTicksPerSnapshot = 2;
  // A beat that is late by more than this, beyond what the thread had to wait for a processor,
  // was late because the machine stood still.
  static constexpr uint64_t kLateMaxNs = 100'000'000;

  // `waited_ns` returns for how long this thread has waited for a processor in total
  // (MakeProcessorWait), or is null where that is not known. The others outlive this.
  HostClockWatch(const HostClocks& clocks, std::function<uint64_t()> waited_ns, ClockEvidence& out);

  // Records a pause or a suspend since the last call. Called every kTickNs.
  void OnTick();
  // Takes a snapshot that is kept regardless of the filter. As every snapshot, it may reveal a
  // suspend, which is recorded.
  void KeepSnapshot() { TakeSnapshot(/*keep=*/true); }
  // Locates the step between two readings, with the amount, after REALTIME was set a moment ago.
  void OnRealtimeSet();
  // Records that something happened to raw itself after `since_raw_ns`, and keeps a snapshot now.
  void OnBreak(ClockEventKind kind, uint64_t since_raw_ns);

  // Returns CLOCK_MONOTONIC_RAW of the last beat, in ns.
  uint64_t raw_ns() const { return readings_.empty() ? 0 : readings_.back().raw_begin_ns; }
  uint64_t snapshots_dropped() const { return filter_.dropped_snapshots(); }

 private:
  // REALTIME against raw at one beat, kept to locate a step.
  struct Reading {
    uint64_t raw_begin_ns = 0;
    uint64_t raw_end_ns = 0;
    int64_t realtime_minus_raw = 0;
  };
  void TakeSnapshot(bool keep);
  void Remember(const ClockSnapshot& snapshot);

  const HostClocks& clocks_;
  const std::function<uint64_t()> waited_ns_;
  ClockEvidence& out_;
  SnapshotFilter filter_;
  std::deque<Reading> readings_;  // of late, since the last step that was reported
  int ticks_to_snapshot_ = 0;
  uint64_t waited_at_snapshot_ns_ = 0;
};

// Returns a function for HostClockWatch: the total time in ns that the calling thread, always the
// same one, has been runnable without a processor, from /proc/thread-self/schedstat
// (Documentation/scheduler/sched-stats.rst of the kernel). It returns 0 where the kernel does not
// provide that.
std::function<uint64_t()> MakeProcessorWait();

}  // namespace neurontrace
