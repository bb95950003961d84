// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tests/clock_sim/network_path.h"
#include "tests/clock_sim/reference_clock.h"
#include "tests/clock_sim/steered_clock.h"
#include "tests/clock_sim/true_clock.h"
#include "tests/clock_sim/utc_world.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

struct ProbePlan {
  uint32_t burst = 4;  // packets, sent back to back
  int64_t interval_ns = kSecond / 2;
  uint32_t first = 64;  // packets in the first half second
};

struct TimeSpan {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

bool IsWithin(std::span<const TimeSpan> spans, int64_t true_ns);

// A host fault that its agent notices, or not.
struct HostFault {
  ClockEventKind kind = ClockEventKind::kUnspecified;
  int64_t at_ns = 0;
  bool noticed = false;
};

// All that is planned for a host. The dice decide the rest.
struct HostPlan {
  ClockPlan clock;
  NetworkPath path;
  ProbePlan probes;
  std::vector<Steering> steering;  // raw_ns: since the begin of the run, on raw
  int64_t snapshot_interval_ns = kSecond;
  std::vector<TimeSpan> agent_down;
  // Nothing runs on the host, but its counter goes on.
  std::vector<TimeSpan> paused;
  std::vector<HostFault> faults;
  std::vector<UtcPlan> utc;
  std::vector<UtcPlan> keeper_utc;  // of the reference's keeper: the same for all hosts of a run
};

// What a fit may read: what an agent would have found out, and no more.
struct HostRecords {
  struct RealtimeStamps {
    uint64_t send_ns = 0;
    uint64_t receive_ns = 0;
  };

  ClockEvidence evidence;
  ClockEvidence keeper;  // of the reference's keeper
  // What each of evidence.exchanges would say had it been stamped with REALTIME: for methods that
  // know no other clock.
  std::vector<RealtimeStamps> realtime;
};

// What no fit may read.
struct HostTruth {
  TrueClock raw;
  SteeredClock steered;
  NetworkPath path;
  struct Flight {  // of each exchange: the true times of its four stamps
    int64_t sent_ns;
    int64_t arrived_ns;
    int64_t answered_ns;
    int64_t received_ns;
  };
  std::vector<Flight> flights;  // empty unless asked for
};

struct Host {
  HostRecords records;
  HostTruth truth;
};

// Plays a host from true time 0 to `duration_ns`. Equal arguments give equal hosts.
Host PlayHost(const HostPlan& plan, const ReferenceClock& reference, int64_t duration_ns,
              uint64_t seed, uint64_t member, bool keep_flights = false);

}  // namespace neurontrace
