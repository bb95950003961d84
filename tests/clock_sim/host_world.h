// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/trace/clock_evidence.h"
#include "tests/clock_sim/dice.h"
#include "tests/clock_sim/reference_clock.h"
#include "tests/clock_sim/steered_clock.h"
#include "tests/clock_sim/true_clock.h"

namespace neurontrace {

// A source of UTC on a host, and what it promises: to be off by no more than `bound_ns`. It keeps
// that, unless it lies.
struct UtcPlan {
  UtcSource source = UtcSource::kPhc;
  double bound_ns = 5'000;
  double lie_ns = 0;  // by which all it says is off besides
  int64_t interval_ns = 5 * kSecond;
};

// UTC as the sources of hosts know it: a smooth clock that nobody here keeps. Equal seeds give
// equal ones.
class SimUtcWorld {
 public:
  SimUtcWorld(uint64_t seed, int64_t duration_ns);

  // Returns the readings of the sources of a host from time 0 to the end, in ascending order of
  // raw.
  std::vector<UtcReading> Read(const std::vector<UtcPlan>& plans, const TrueClock& raw,
                               Dice dice) const;
  // What the keeper of the reference stores of its own clocks.
  ClockEvidence ReadReferenceHost(const std::vector<UtcPlan>& plans,
                                  const ReferenceClock& reference) const;

 private:
  UtcReading ReadOnce(const UtcPlan& plan, int64_t true_ns, uint64_t raw_ns, double bias_ns,
                      Dice& dice) const;

  uint64_t seed_;
  int64_t duration_ns_;
  TrueClock utc_;
};

enum class Way : uint8_t { kForward = 0, kBackward = 1 };  // host to aggregator, and back

// The way between a host and the aggregator: least delays that may differ, and what is added to
// them. Delays are never less than the least of their time. Plain data.
struct NetworkPath {
  struct Congestion {
    Way way = Way::kForward;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
    int64_t delay_ns = 0;  // queues are full: each packet waits so long, and a little
  };
  struct RouteChange {
    int64_t at_ns = 0;
    int64_t forward_ns = 0;  // added to the least delay from then on
    int64_t backward_ns = 0;
  };

  int64_t forward_ns = 30 * kMicrosecond;  // least delay
  int64_t backward_ns = 30 * kMicrosecond;
  double jitter_ns = 6'000;  // mean of the exponential part
  double tail_chance = 0.1;  // of a Pareto part besides, cut at 20 ms
  double tail_least_ns = 15'000;
  double tail_alpha = 1.3;
  double blocking_chance = 0;  // that a bulk frame is ahead in the queue: up to 1 ms
  double loss_chance = 0.001;
  std::vector<Congestion> congestions;
  std::vector<RouteChange> route_changes;

  // Without any jitter.
  int64_t LeastDelayNs(Way way, int64_t true_ns) const;
  int64_t DelayNs(Way way, int64_t true_ns, Dice& dice) const;
};

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
  // Nothing runs on the host, but its counter continues.
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
