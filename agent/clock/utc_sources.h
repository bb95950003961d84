// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "agent/clock/chrony_client.h"
#include "agent/clock/clock_bound.h"
#include "agent/clock/phc_reader.h"
#include "base/file_system.h"
#include "base/random.h"
#include "base/task_runner.h"
#include "clock/host_clocks.h"
#include "trace/clock_evidence.h"

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

}  // namespace neurontrace
