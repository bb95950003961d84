// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/clock/chrony_client.h"
#include "agent/clock/chrony_tracking.h"
#include "agent/clock/clock_bound.h"
#include "agent/clock/phc_reader.h"
#include "lib/base/file_system.h"
#include "lib/base/random.h"
#include "lib/base/task_runner.h"
#include "lib/clock/host_clocks.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// Where the sources of UTC are found; tests give other places.
struct UtcPaths {
  PhcPaths phc;
  std::string clock_bound = ClockBoundMemory::kPath;
  ChronyPaths chrony;
};

// Reads UTC with an error bound from whatever provides it on this machine: a PTP hardware clock
// (PHC), the ClockBound daemon, chronyd. Each may appear and disappear while the agent runs, and
// none is required: the aggregator aligns hosts by probes alone, and UTC only anchors them. Lives
// on the sequence of its runner.
class UtcSources {
 public:
  // The interval of the calls of Ask.
  static constexpr uint64_t kIntervalNs = 5'000'000'000;

  struct Counters {
    // Readings of each source that were appended to the evidence.
    uint64_t phc = 0;
    uint64_t clock_bound = 0;
    uint64_t chrony = 0;
    // Readings that failed or were implausible, and promises that did not hold.
    uint64_t refused = 0;
  };
  // `runner` is the sequence that the sources live on.
  struct Deps {
    TaskRunner& runner;
    const HostClocks& clocks;
    FileSystem& files;
    Random& random;
  };

  // Everything in `deps`, and `out`, outlive this.
  UtcSources(const Deps& deps, UtcPaths paths, ClockEvidence& out);

  // Asks all sources. Called every kIntervalNs. Readings of the PHC and of ClockBound are appended
  // to the evidence at once, chronyd's when its answer arrives. `disruption_marker` is the
  // vmclock's, where there is one.
  void Ask(std::optional<uint64_t> disruption_marker);

  const Counters& counters() const { return counters_; }

 private:
  // Each asks one source and appends its reading, if there is one.
  void QueryPhc();
  void QueryClockBound(std::optional<uint64_t> disruption_marker);
  void OnChrony(const ChronyTracking& tracking);
  // Counts a reading and appends it to the evidence; counts an absent one as refused.
  void Take(const std::optional<UtcReading>& reading, uint64_t& counter);

  const Deps deps_;
  const UtcPaths paths_;
  ClockEvidence& out_;
  // Empty while no clock with an error bound is found.
  std::optional<PhcReader> phc_;
  // Whether the last reading succeeded. A device that was removed, or whose driver was loaded
  // again, never answers any more, so the next search opens what is there by then.
  bool phc_answers_ = false;
  ChronyClient chrony_;
  // The number of calls of Ask, by which searches for a PHC are spaced.
  int asks_ = 0;
  Counters counters_;
};

}  // namespace neurontrace
