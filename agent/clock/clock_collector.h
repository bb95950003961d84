// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "agent/clock/chrony_client.h"
#include "agent/clock/clock_bound.h"
#include "agent/clock/host_clock_watch.h"
#include "agent/clock/phc_reader.h"
#include "agent/clock/vm_clock.h"
#include "lib/base/file_system.h"
#include "lib/base/random.h"
#include "lib/base/task_runner.h"
#include "lib/clock/host_clocks.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// Where the sources of UTC are looked for.
struct UtcPaths {
  PhcPaths phc;
  std::string clock_bound = ClockBoundMemory::kPath;
  ChronyPaths chrony;
};

// Asks whoever promises to know UTC on this machine: a PHC, ClockBound, chronyd. Each is looked for
// at run time and again later, as it may come and go; none is needed. Lives on the sequence of its
// runner.
class UtcSources {
 public:
  static constexpr uint64_t kIntervalNs = 5'000'000'000;

  struct Counters {
    uint64_t phc = 0;  // readings of each
    uint64_t clock_bound = 0;
    uint64_t chrony = 0;
    uint64_t refused = 0;  // what came and made no sense, or promised nothing
  };
  struct Deps {
    TaskRunner& runner;
    const HostClocks& clocks;
    FileSystem& files;
    Random& random;
  };

  // Everything in `deps`, and `out`, outlive this.
  UtcSources(const Deps& deps, UtcPaths paths, ClockEvidence& out);

  // Every kIntervalNs; what is known at once goes into the evidence, chronyd's answer a moment
  // later. `disruption_marker` is the vmclock's, where there is one.
  void Ask(std::optional<uint64_t> disruption_marker);

  const Counters& counters() const { return counters_; }

 private:
  void AskPhc();
  void AskClockBound(std::optional<uint64_t> disruption_marker);
  void OnChrony(const ChronyTracking& tracking);
  void Take(const std::optional<UtcReading>& reading, uint64_t& counter);

  const Deps deps_;
  const UtcPaths paths_;
  ClockEvidence& out_;
  std::optional<PhcReader> phc_;
  ChronyClient chrony_;
  int asks_ = 0;
  Counters counters_;
};

// Where a host shows what is watched; other places are for tests.
struct ClockPaths {
  UtcPaths utc;
  std::string vm_clock = VmClock::kPath;
  std::string clock_source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
};

// Collects the evidence about the clocks of this host, in batches: snapshots, what happens to the
// clocks, promises of UTC, and the exchanges that others bring. Lives on the sequence of its
// runner, which should do nothing that blocks: a late heartbeat is taken for a machine that stood
// still.
class ClockCollector {
 public:
  static constexpr uint64_t kBatchNs = 2'000'000'000;
  static constexpr size_t kBatchEntriesMax = 1'000;

  struct Counters {
    uint64_t batches = 0;
    uint64_t snapshots = 0;  // kept
    uint64_t exchanges = 0;
    uint64_t utc_readings = 0;
    uint64_t realtime_steps = 0;
    uint64_t suspends = 0;
    uint64_t pauses = 0;
    uint64_t migrations = 0;
    uint64_t clock_source_changes = 0;
  };
  struct Deps {
    TaskRunner& runner;
    const HostClocks& clocks;
    FileSystem& files;
    Random& random;
  };
  struct Hooks {
    // Every kBatchNs, at first more often, and when there is a lot; never empty, each list in
    // order of raw.
    std::function<void(ClockEvidence batch)> on_batch;
    // Raw may not be what it was: probes are worth more now. Null: nobody wants to know.
    std::function<void()> on_break;
    std::function<void()> on_beat;  // every HostClockWatch::kBeatNs; or null
  };

  // What is in `deps` outlives this.
  ClockCollector(const Deps& deps, ClockPaths paths, Hooks hooks);
  ~ClockCollector();

  // On the sequence, as is all the rest. UNAVAILABLE where the kernel gives no timers: then nothing
  // is collected.
  absl::Status Start();
  void Add(const ClockExchange& exchange);
  // Gives what there is now, if there is anything.
  void Flush();
  // The same, with how the clocks are at this moment.
  void FlushNow();

  // What a beat does; public for tests, which have no kernel that beats.
  void Beat();

  const Counters& counters() const { return counters_; }
  const UtcSources::Counters& utc_counters() const { return utc_.counters(); }
  uint64_t snapshots_let_go() const { return watch_.snapshots_let_go(); }

 private:
  class KernelTimer;

  absl::Status StartBeat();
  absl::Status WatchRealtime();
  void OnRealtimeSet();
  void LookAtVmClock();
  void LookAtClockSource();
  void Broke() {
    if (hooks_.on_break) hooks_.on_break();
  }

  const Deps deps_;
  const ClockPaths paths_;
  const Hooks hooks_;
  ClockEvidence batch_;
  HostClockWatch watch_;
  UtcSources utc_;
  std::optional<VmClock> vm_clock_;
  std::optional<uint64_t> marker_;
  uint64_t marker_raw_ns_ = 0;  // when it was last seen as it is
  std::string clock_source_;
  uint64_t clock_source_raw_ns_ = 0;
  uint64_t beats_ = 0;
  uint64_t batch_beat_ = 0;  // of the last batch
  std::unique_ptr<KernelTimer> beat_timer_;
  std::unique_ptr<KernelTimer> step_watch_;
  Counters counters_;
};

}  // namespace neurontrace
