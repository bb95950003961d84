// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "agent/clock/host_clock_watch.h"
#include "agent/clock/utc_sources.h"
#include "agent/clock/vm_clock.h"
#include "lib/base/file_system.h"
#include "lib/base/random.h"
#include "lib/base/task_runner.h"
#include "lib/clock/host_clocks.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// Where this host shows what is watched; tests give other places.
struct ClockPaths {
  UtcPaths utc;
  std::string vm_clock = VmClock::kPath;
  // The file with the name of the kernel's clock source, such as "tsc".
  std::string clock_source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
};

// Collects the evidence about this host's clocks, in batches: snapshots, breaks (pauses, suspends,
// migrations, steps), readings of UTC, and the exchanges that the probers add.
// docs/formats/clock.md describes the evidence. Lives on the sequence of its runner, which must not
// do anything that blocks: a late heartbeat is taken for a machine that stood still.
class ClockCollector {
 public:
  // A batch is handed over after kBatchNs, or earlier with kBatchEntriesMax entries. That is below
  // limits::kClockBatchEntriesMax, beyond which an aggregator refuses a batch.
  static constexpr uint64_t kBatchNs = 2'000'000'000;
  static constexpr size_t kBatchEntriesMax = 1'000;

  // Since construction; only grow.
  struct Counters {
    uint64_t batches = 0;
    // Snapshots that the filter kept. These and readings of UTC are counted when their batch is
    // handed over.
    uint64_t snapshots = 0;
    uint64_t exchanges = 0;
    uint64_t utc_readings = 0;
    uint64_t realtime_steps = 0;
    uint64_t suspends = 0;
    uint64_t pauses = 0;
    // Changes of the vmclock's disruption marker.
    uint64_t migrations = 0;
    uint64_t clock_source_changes = 0;
  };
  // `runner` is the sequence that the collector lives on.
  struct Deps {
    TaskRunner& runner;
    const HostClocks& clocks;
    FileSystem& files;
    Random& random;
  };
  // Receives the evidence. Called on the sequence; must not block. The defaults do nothing.
  class Listener {
   public:
    virtual ~Listener() = default;
    // Called every kBatchNs, at first more often, and when there is a lot. The batch is never
    // empty; each of its lists is in order of raw.
    virtual void OnBatch(ClockEvidence batch) = 0;
    // Called when raw may not be what it was: probes are worth more now.
    virtual void OnBreak() {}
    // Called every HostClockWatch::kTickNs.
    virtual void OnTick() {}
  };

  // Everything in `deps`, and the listener, outlive this.
  ClockCollector(const Deps& deps, ClockPaths paths, Listener& listener);
  ~ClockCollector();

  // Starts the heartbeat. Fails with UNAVAILABLE if the kernel provides no timers; nothing is
  // collected then. A missing vmclock, or no notification of steps, only makes breaks less exact
  // and is logged. As all functions, to be called on the sequence.
  absl::Status Start();
  // Adds a probe's exchange to the batch.
  void Add(const ClockExchange& exchange);
  // Hands the open batch to the listener, unless it is empty.
  void Flush();
  // Takes a snapshot that is kept, then flushes: the evidence then reaches up to this moment.
  void FlushNow();

  // Performs one heartbeat. Public for tests, which have no kernel timer.
  void OnTick();

  const Counters& counters() const { return counters_; }
  const UtcSources::Counters& utc_counters() const { return utc_.counters(); }
  // Returns how many snapshots carried information and were dropped by the filter's rate limit.
  uint64_t snapshots_dropped() const { return watch_.snapshots_dropped(); }

 private:
  // A timerfd watched by the runner.
  class KernelTimer;

  // Fails with UNAVAILABLE if the kernel gives no timer, as the next function does.
  absl::Status StartTimer();
  absl::Status WatchRealtime();
  // Records the step after CLOCK_REALTIME was set.
  void OnRealtimeSet();
  // Compare the vmclock's marker and the kernel's clock source with what they were, and record a
  // break since the last look if they differ.
  void ReadVmClock();
  void ReadClockSource();
  // Counts the events that were added to the batch since the last call, and calls OnBreak if one
  // means that raw may have changed. To be called after everything that the watch does.
  void CountEvents();

  const Deps deps_;
  const ClockPaths paths_;
  Listener& listener_;
  // The open batch. The watch and the sources of UTC append to it, too.
  ClockEvidence batch_;
  // How many of its events CountEvents has counted.
  size_t events_counted_ = 0;
  HostClockWatch watch_;
  UtcSources utc_;
  // Opened by Start; empty if the hypervisor provides none.
  std::optional<VmClock> vm_clock_;
  // The vmclock's marker at the last look; empty before the first.
  std::optional<uint64_t> marker_;
  // When that was, in ns of raw: a disruption that is found later happened after this.
  uint64_t marker_raw_ns_ = 0;
  // The kernel's clock source at the last look, and when that was, in ns of raw.
  std::string clock_source_;
  uint64_t clock_source_raw_ns_ = 0;
  uint64_t ticks_ = 0;
  // The beat at which the last batch was handed over, or was empty.
  uint64_t batch_tick_ = 0;
  // Expires every HostClockWatch::kTickNs.
  std::unique_ptr<KernelTimer> tick_timer_;
  // Is cancelled whenever CLOCK_REALTIME is set; null if the kernel refused the timer.
  std::unique_ptr<KernelTimer> step_watch_;
  Counters counters_;
};

}  // namespace neurontrace
