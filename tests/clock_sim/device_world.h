// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tests/clock_sim/dice.h"
#include "tests/clock_sim/true_clock.h"

namespace neurontrace {

// How a core's executions, and what is noted of them, come about.
struct DeviceScenario {
  std::string_view name;
  std::string_view words;
  int64_t duration_ns = 60 * kSecond;
  int64_t execution_least_ns = kMillisecond;  // log-uniform between these
  int64_t execution_most_ns = 300 * kMillisecond;
  int64_t pause_mean_ns = 60 * kMillisecond;  // between executions
  // From submission to start, and from end to completion: least, exponential, and now and then a
  // Pareto tail.
  int64_t bracket_least_ns = 4 * kMicrosecond;
  double bracket_jitter_ns = 6'000;
  double sync_tail_chance = 0.05;  // that the two readings of a sync point are far apart
  double corrupt_chance = 0;       // the host's reading is any within five seconds
  double missing_chance = 0;       // no sync point
  double swapped_chance = 0;       // this one's and the next one's have each other's exec_id
  bool resets = false;             // the counter, in mid-run
};

std::span<const DeviceScenario> DeviceScenarios();

// What a fit may read of one core, in the order in which its ring gave it out.
struct DeviceRecords {
  struct SyncPoint {
    uint64_t exec_id = 0;
    uint64_t device_ns = 0;
    uint64_t host_ns = 0;
  };
  struct Execution {
    uint64_t exec_id = 0;
    uint64_t submit_ns = 0;         // host: submitted not after
    uint64_t complete_ns = 0;       // host: known to be complete not before
    uint64_t start_ns = 0;          // device
    uint64_t end_ns = 0;            // device
    std::optional<SyncPoint> sync;  // what came in this place of the ring
  };
  std::vector<Execution> executions;
};

// A hardware event to map, in the order of the ring.
struct DeviceStamp {
  size_t execution = 0;  // index
  uint64_t device_ns = 0;
};

// A core as it was. The host's clock is the truth here.
struct Device {
  DeviceRecords records;
  std::vector<DeviceStamp> stamps;
  std::vector<uint64_t> truth_ns;  // host, of each stamp
  std::optional<size_t> reset;     // the first execution after it
};

// Equal arguments give equal devices.
Device PlayDevice(const DeviceScenario& scenario, uint64_t seed);

}  // namespace neurontrace
